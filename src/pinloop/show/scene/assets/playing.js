"use strict";
// Goes to the time that Python asks for.

const replay = document.querySelector(".replay").replay;
new EventSource("events").onmessage = (event) => {
  const state = JSON.parse(event.data);
  if (state.time !== undefined && replay !== undefined) {
    replay.pause();
    replay.seek(state.time);
  }
};
