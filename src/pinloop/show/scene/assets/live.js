"use strict";
// A robot that sliders move: values go to Python, which closes the loops; placements come back.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);

class Robot {
  constructor() {
    this.pane = byId("pane");
    this.panel = byId("panel");
    this.number = 0;       // of the state that is shown
    this.wanted = null;    // what the page asks for next; only the latest counts
    this.asking = false;
    this.dragged = null;   // the slider under the user's hand
    this.follows = false;  // whether the camera keeps all of the robot in the picture
    this.viewer = this.makeViewer();
    this.nodes = data.nodes.map((path) => this.node(path));
    this.sliders = data.sliders.map((entry, k) => this.addSlider(entry, k));
    this.connect();
    this.listen();
  }

  // -- scene --------------------------------------------------------------------------------

  makeViewer() {
    this.view = new Pane(this.pane, data.commands);
    this.view.viewer.controls.addEventListener("start", () => (this.follows = false));
    return this.view.viewer;
  }

  // Where the robot is now, and how much farther away than at first all of it is seen.
  extent() {
    const { middle, radius } = this.state ?? data;
    const [x, y, z] = middle.map((value, axis) => value - data.middle[axis]);
    // A pose that was moved may reach farther towards the camera than the one that was fitted.
    const spare = this.state === undefined ? 1 : 1.08;
    return [[x, z, -y], (spare * radius) / data.radius];  // the page's y axis points up
  }

  isSeen() {
    return this.view.holds(["robot", "skeleton", "loops"]);
  }

  node(path) {
    return this.view.node(path).object;
  }

  // -- sliders ------------------------------------------------------------------------------

  addSlider(entry, k) {
    const box = document.createElement("div");
    box.className = "joint";
    box.innerHTML = "<label><b></b><output></output></label><input type='range'>"
      + "<div class='ends'><span></span><span></span></div>";
    box.querySelector("b").textContent = entry.label;
    const [low, high] = box.querySelectorAll(".ends span");
    low.textContent = this.valueText(entry, entry.low).split(" · ").pop();
    high.textContent = this.valueText(entry, entry.high).split(" · ").pop();
    const input = box.querySelector("input");
    Object.assign(input, { min: entry.low, max: entry.high, step: "any" });
    input.setAttribute("aria-label", entry.label);
    input.addEventListener("input", () => {
      if (this.dragged === null) {
        this.follows = this.isSeen();  // whoever looks at a part of the robot goes on doing so
      }
      this.dragged = k;
      this.ask({ slider: k, value: Number(input.value) });
    });
    input.addEventListener("change", () => {
      this.dragged = null;
      this.settle();
    });
    (entry.motor ? byId("motors") : byId("passive").querySelector("div")).append(box);
    return { entry, box, input, output: box.querySelector("output") };
  }

  valueText(entry, value) {
    return entry.linear
      ? (1000 * value).toFixed(1) + " mm"
      : value.toFixed(3) + " rad · " + ((180 / Math.PI) * value).toFixed(1) + "°";
  }

  // -- talking to Python --------------------------------------------------------------------

  async ask(message) {
    this.wanted = message;
    if (this.asking) {
      return;
    }
    this.asking = true;
    try {
      while (this.wanted !== null) {
        const body = JSON.stringify(this.wanted);
        this.wanted = null;
        const headers = { "Content-Type": "application/json" };
        const answer = await fetch("ask", { method: "POST", headers, body });
        this.apply(await answer.json());
      }
      byId("gone").hidden = true;
    } catch (error) {
      byId("gone").hidden = false;
    } finally {
      this.asking = false;
    }
  }

  listen() {
    this.events = new EventSource("events");
    this.events.onmessage = (event) => this.apply(JSON.parse(event.data));
    this.events.onopen = () => (byId("gone").hidden = true);
    this.events.onerror = () => (byId("gone").hidden = false);
  }

  apply(state) {
    if (state.refused !== undefined) {
      byId("said").textContent = state.refused;
      return;
    }
    if (state.number <= this.number) {
      return;
    }
    this.number = state.number;
    this.state = state;
    state.placements.forEach((numbers, k) => {
      const node = this.nodes[k];
      node.matrix.fromArray(numbers);
      node.matrix.decompose(node.position, node.quaternion, node.scale);
    });
    if (this.follows && !this.isSeen()) {
      this.view.turnTo(...this.extent());
    }
    byId("said").textContent = state.said;
    const closure = byId("closure");
    closure.classList.toggle("open", !state.closed);
    closure.textContent = data.loops === 0 ? ""
      : data.closes + (state.closed ? " closed" : " OPEN") + ", residual "
        + state.residual.toExponential(1);
    this.settle();
    this.viewer.set_dirty();
  }

  // Sliders show where the joints are; the one under the hand only once nothing more is asked for.
  settle() {
    if (this.state === undefined) {
      return;
    }
    this.sliders.forEach(({ entry, box, input, output }, k) => {
      const value = this.state.values[k];
      output.textContent = this.valueText(entry, value);
      const held = this.dragged === k;
      if (!held || (this.wanted === null && this.state.said !== "")) {
        input.value = String(value);
      }
      box.classList.toggle("stopped", held && this.state.said !== "");
    });
  }

  // -- controls -----------------------------------------------------------------------------

  connect() {
    const passive = data.sliders.filter((entry) => !entry.motor).length;
    const details = byId("passive");
    details.hidden = passive === 0;
    details.open = passive > 0 && passive === data.sliders.length;
    details.querySelector("summary").textContent =
      passive === data.sliders.length ? "joints" : "other joints (" + passive + ")";
    byId("reset").addEventListener("click", () => this.ask({ reset: true }));
    byId("home").addEventListener("click", () => this.view.turnHome(...this.extent()));
    byId("words").addEventListener("click", () => this.copy(this.state.words));
    byId("python").addEventListener("click", () => this.copy(this.state.python));
    this.connectSwitch("skeleton", data.skeleton, data.dressed);
    this.connectSwitch("loops", true, data.closes === "loops");
  }

  connectSwitch(name, shown, useful) {
    const box = byId("show-" + name);
    box.checked = shown;
    box.parentElement.hidden = !useful;
    box.addEventListener("change", () => {
      this.node(name).visible = box.checked;
      this.viewer.set_dirty();
    });
  }

  // The text is shown too: a page in a frame may not write to the clipboard.
  copy(text) {
    const area = byId("copied");
    area.hidden = false;
    area.value = text;
    area.select();
    if (navigator.clipboard !== undefined) {
      navigator.clipboard.writeText(text).catch(() => undefined);
    }
  }
}

window.pinloop = new Robot();
