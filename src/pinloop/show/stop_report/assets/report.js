"use strict";
// Ties plots and replay together: a line at the time shown, and a click that goes to a time.

(function () {
  const player = document.querySelector(".replay");
  const plots = [...document.querySelectorAll("svg.plot[data-from]")];
  const perSecond = Number(document.querySelector("main").dataset.perSecond || 1);
  const numbers = (plot) => ["left", "right", "from", "to"].map((key) => Number(plot.dataset[key]));

  player.addEventListener("replay:time", (event) => {
    for (const plot of plots) {
      const [left, right, from, to] = numbers(plot);
      const x = left + ((right - left) * (perSecond * event.detail - from)) / (to - from);
      const cursor = plot.querySelector(".cursor");
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      cursor.setAttribute("visibility", "visible");
    }
  });

  for (const plot of plots) {
    plot.addEventListener("click", (event) => {
      if (!player.replay) {
        return;
      }
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(
        plot.getScreenCTM().inverse()
      );
      const [left, right, from, to] = numbers(plot);
      player.replay.pause();
      player.replay.seek((from + ((to - from) * (at.x - left)) / (right - left)) / perSecond);
    });
  }
})();
