// A page that is opened from the file system may not start a worker, and the search of the site runs
// in one. Here its script runs in a hidden frame instead; on a server nothing is changed.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const script = new URL(url, document.baseURI).href.replace(/"/g, "%22");
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html><script>" +
        "window.postMessage = data => parent.dispatchEvent(" +
        "new CustomEvent('from-frame', {detail: {data, frame: window.frameElement}}))" +
        `</` + `script><script src="${script}"></` + "script>";
      addEventListener("from-frame", event => {
        if (event.detail.frame === frame)
          this.dispatchEvent(new MessageEvent("message", {data: event.detail.data}));
      });
      frame.addEventListener("load", () => {
        const late = this.waiting;
        this.waiting = null;
        late.forEach(data => this.postMessage(data));
      });
      this.frame = frame;
      const attach = () => document.body.append(frame);
      if (document.body) attach(); else addEventListener("DOMContentLoaded", attach);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
