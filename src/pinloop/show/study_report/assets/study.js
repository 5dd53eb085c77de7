"use strict";
// Shows one case at a time, chosen by buttons, arrow keys or links; all of them on paper.

(function () {
  const bar = document.querySelector(".tabs");
  const live = [];  // replays that run, the oldest first, each with what it was before it began
  const tabs = [...document.querySelectorAll(".tabs [role=tab]")];
  const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  const replayOf = (tab) => panelOf(tab).querySelector(".replay");

  // Browsers keep but some pictures alive at a time: the oldest one is put back as it was.
  function start(element) {
    if (element.replay || element.classList.contains("replay-failed")) {
      return;
    }
    if (live.length >= Number(bar.dataset.most)) {
      const [old, before] = live.shift();
      const still = old.querySelector(".replay-still").getAttribute("src");
      if (still !== null) {
        before.querySelector(".replay-still").src = still;
      }
      old.replay.viewer.renderer.forceContextLoss();
      old.replaceWith(before);
    }
    const before = element.cloneNode(true);
    startReplay(element);
    if (element.replay) {
      live.push([element, before]);
    }
  }

  function show(tab) {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      panelOf(other).hidden = !chosen;
      if (!chosen && replayOf(other).replay) {
        replayOf(other).replay.pause();
      }
    }
    start(replayOf(tab));
  }

  tabs.forEach((tab, k) => {
    tab.addEventListener("click", () => show(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step !== undefined) {
        const next = tabs[(k + step + tabs.length) % tabs.length];
        show(next);
        next.focus();
      }
    });
  });

  function follow() {
    const wanted = tabs.find((tab) => "#" + tab.getAttribute("aria-controls") === location.hash);
    if (wanted !== undefined) {
      show(wanted);
      document.getElementById("cases").scrollIntoView();
    }
  }
  window.addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    if (event.target.closest("a[href^='#']")) {
      setTimeout(follow);  // also if the address is the same as before
    }
  });
  follow();

  // Paper shows every case: those that nobody has looked at are started for their pictures.
  window.addEventListener("beforeprint", () => {
    const chosen = tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
    for (const tab of tabs) {
      show(tab);
      if (replayOf(tab).replay) {
        replayOf(tab).replay.fit();
        replayOf(tab).replay.still();
      }
    }
    show(chosen);
  });
})();
