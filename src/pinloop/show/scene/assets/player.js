"use strict";
// Plays a motion: poses over time on the nodes of a MeshCat scene, with controls below it.
// The element tells the time that it shows by events "replay:time"; see `element.replay` for the rest.

// What several replays of the page have in common; they have numbers in the place of it.
let shared = null;
function sharedCommands() {
  shared = shared || JSON.parse(document.querySelector(".replay-commands").textContent);
  return shared;
}

class Replay {
  constructor(element, data) {
    this.element = element;
    this.data = data;
    this.pane = element.querySelector(".replay-pane");
    this.times = data.times;
    this.start = data.times[0];
    this.end = data.times[data.times.length - 1];
    this.positions = new Uint16Array(bytesOf(data.positions).buffer);
    this.quaternions = new Int16Array(bytesOf(data.quaternions).buffer);
    this.playing = false;
    this.viewer = this.makeViewer();
    this.nodes = data.paths.map((path) => this.node(path).object);
    this.jumps = new Set(data.jumps);
    this.addGhosts();
    this.addHalos();
    this.arrows = data.arrows.map((arrow, k) => this.addArrow(arrow, k));
    this.layers = data.layers.map((layer) => this.addLayer(layer));
    this.states = new Map();
    this.connect();
    this.seek(Number(element.dataset.opens));
    this.element.classList.add("replay-ready");
  }

  // -- scene --------------------------------------------------------------------------------

  makeViewer() {
    const commands = this.data.commands.map(
      (command) => (typeof command === "number" ? sharedCommands()[command] : command)
    );
    this.view = new Pane(this.pane, commands);
    this.view.viewer.controls.enableZoom = false;  // scrolling moves the page until a click here
    return this.view.viewer;
  }

  fit() {
    this.view.fit();
  }

  node(path) {
    return this.view.node(path);
  }

  addGhosts() {
    this.ghost = this.data.ghosts.flatMap((time, k) => {
      this.time = time;
      this.place();
      return this.data.ghost.map((name) => {
        const copy = this.node(name).object.clone(true);
        this.makeTranslucent(copy, { opacity: 0.26, order: 1, behind: 4, color: 0x5b7fa6 });
        this.viewer.set_object(["ghost", String(k), name], copy);
        return this.node("ghost/" + k + "/" + name).object;
      });
    });
  }

  // Symbols of joints, lines and loops are drawn last; symbols have a white edge on any colour.
  addHalos() {
    for (const [name, order] of [["loops", 6], ["joints", 6], ["traces", 7], ["arrows", 8]]) {
      this.meshes(this.node(name).object).forEach((mesh) => (mesh.renderOrder = order));
    }
    for (const mesh of this.meshes(this.node("joints").object)) {
      const halo = mesh.clone(false);
      halo.material = mesh.material.clone();
      halo.material.color.setHex(0xffffff);
      halo.material.emissive.setHex(0xffffff);
      halo.scale.multiplyScalar(1.3);
      halo.renderOrder = 5;
      mesh.parent.add(halo);
    }
  }

  addArrow(arrow, k) {
    const parts = ["shaft", "tip", "second"].map((name) => this.node("arrows/" + k + "/" + name).object);
    const root = this.node("arrows/" + k).object;
    this.meshes(root).forEach((mesh) => (mesh.castShadow = mesh.receiveShadow = false));
    return {
      root, shaft: parts[0], tips: arrow.moment ? parts.slice(1) : parts.slice(1, 2),
      low: arrow.low, step: arrow.step, unit: arrow.largest / 32767 / arrow.scale,
      start: new Uint16Array(bytesOf(arrow.start).buffer),
      vector: new Int16Array(bytesOf(arrow.vector).buffer),
    };
  }

  meshes(root) {
    const found = [];
    root.traverse((object) => {
      if (object.isMesh) {
        found.push(object);
      }
    });
    return found;
  }

  addLayer(layer) {
    const node = this.node(layer.path).object;
    // So far behind that the robot shows where its surface is that of the layer.
    this.makeTranslucent(node, { opacity: layer.opacity, order: 3, behind: 600, color: null });
    return node;
  }

  // Of surfaces behind each other only the first one is seen: each is drawn twice, first into the
  // depth buffer alone.
  makeTranslucent(root, { opacity, order, behind, color }) {
    for (const mesh of this.meshes(root)) {
      mesh.material = mesh.material.clone();
      Object.assign(mesh.material, {
        transparent: true, opacity: opacity, depthWrite: false, depthTest: true,
        polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: behind,
      });
      if (color !== null) {
        mesh.material.color.setHex(color);
        mesh.material.vertexColors = false;
      }
      mesh.castShadow = false;
      mesh.receiveShadow = false;
      mesh.renderOrder = order + 1;
      const depth = mesh.clone(false);
      depth.material = mesh.material.clone();
      Object.assign(depth.material, { colorWrite: false, depthWrite: true });
      depth.renderOrder = order;
      mesh.parent.add(depth);
    }
  }

  // -- time ---------------------------------------------------------------------------------

  seek(time) {
    this.time = Math.min(Math.max(time, this.start), this.end);
    this.place();
    this.paint();
    this.show();
    this.viewer.set_dirty();
  }

  // The frame before the time, and how far from it to the next one the time is.
  place() {
    const times = this.times;
    let [low, high] = [0, times.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= this.time) {
        low = middle;
      } else {
        high = middle;
      }
    }
    const span = times[high] - times[low];
    const part = span > 0 ? (this.time - times[low]) / span : 0;
    this.frame = { low, high, part };
    const count = this.nodes.length;
    this.nodes.forEach((node, k) => {
      const [a, b] = [3 * (low * count + k), 3 * (high * count + k)];
      const place = [0, 1, 2].map((axis) => {
        const cells = (1 - part) * this.positions[a + axis] + part * this.positions[b + axis];
        return this.data.low[k][axis] + this.data.step[k][axis] * cells;
      });
      node.position.set(...place);
      const [c, d] = [4 * (low * count + k), 4 * (high * count + k)];
      const turn = [0, 1, 2, 3].map(
        (axis) => (1 - part) * this.quaternions[c + axis] + part * this.quaternions[d + axis]
      );
      node.quaternion.set(...turn).normalize();
    });
  }

  // Arrows between two frames; a force jumps where joints lock, so it is not drawn halfway there.
  drawArrows() {
    const { low, high } = this.frame;
    const jumps = this.jumps.has(high) && this.time < this.times[high];
    const part = jumps ? 0 : this.frame.part;
    const mean = (values, axis) => (1 - part) * values[3 * low + axis] + part * values[3 * high + axis];
    const size = this.data.size;
    for (const arrow of this.arrows) {
      const start = [0, 1, 2].map((axis) => arrow.low[axis] + arrow.step[axis] * mean(arrow.start, axis));
      const vector = [0, 1, 2].map((axis) => arrow.unit * mean(arrow.vector, axis));
      const length = Math.hypot(...vector);
      arrow.root.visible = length > 0.004 * size;
      if (!arrow.root.visible) {
        continue;
      }
      const along = arrow.root.position.clone().set(...vector).divideScalar(length);
      const turn = arrow.root.quaternion.clone()
        .setFromUnitVectors(along.clone().set(0, 0, 1), along);
      const tip = Math.min(0.06 * size, 0.6 * length / arrow.tips.length);
      const place = (object, distance, scale) => {
        object.position.set(...start).addScaledVector(along, distance);
        object.quaternion.copy(turn);
        object.scale.set(...scale);
      };
      const thick = tip / (0.06 * size);
      const straight = length - tip * arrow.tips.length;
      place(arrow.shaft, straight / 2, [thick, thick, straight]);
      arrow.tips.forEach((object, k) => {
        place(object, length - (k + 0.5) * tip, [thick, thick, thick]);
      });
    }
  }

  // Marks and list of the joints: who stands, who moves; loops that are open; the mode in words.
  paint() {
    this.drawArrows();
    for (const loop of this.data.loops) {
      const open = loop.open.some(([from, to]) => from <= this.time && this.time < to);
      for (const path of loop.paths) {
        const material = this.node(path + "/<object>").object.material;
        material.color.setHex(open ? 0x8a919c : 0xd4174f);
        Object.assign(material, { transparent: true, opacity: open ? 0.7 : 1 });
      }
    }
    let mode = "";
    for (const [from, words] of this.data.modes) {
      mode = from <= this.time ? words : mode;
    }
    if (this.mode.textContent !== mode) {
      this.mode.textContent = mode;
    }
    for (const joint of this.data.joints) {
      const stands = joint.standing.some(([from, to]) => from <= this.time && this.time <= to);
      if (this.states.get(joint.name) === stands) {
        continue;
      }
      this.states.set(joint.name, stands);
      for (const path of joint.paths) {
        const material = this.node(path + "/<object>").object.material;
        material.color.setHex(stands ? 0x1f6fb5 : 0xed7f1f);
        material.emissive.copy(material.color).multiplyScalar(0.45);
      }
      const item = this.items.get(joint.name);
      item.classList.toggle("stands", stands);
      item.lastElementChild.textContent = this.element.dataset[stands ? "stands" : "moves"];
    }
  }

  show() {
    const text = this.timeText(this.time);
    this.slider.value = String(this.time);
    this.slider.setAttribute("aria-valuetext", text);
    this.clock.textContent = text;
    this.element.dispatchEvent(new CustomEvent("replay:time", { detail: this.time }));
  }

  timeText(time) {
    return this.end - this.start < 1 ? (1000 * time).toFixed(1) + " ms" : time.toFixed(3) + " s";
  }

  play() {
    if (this.time >= this.end) {
      this.seek(this.start);
    }
    this.setPlaying(true);
    let last = null;
    let rest = 0;
    const advance = (now) => {
      if (!this.playing) {
        return;
      }
      const passed = last === null ? 0 : (now - last) / 1000;
      last = now;
      if (this.time < this.end) {
        this.seek(this.time + passed * Number(this.speed.value));
      } else if (this.loop.checked && this.end > this.start) {
        rest += passed;
        if (rest > 1) {
          rest = 0;
          this.seek(this.start);
        }
      } else {
        this.setPlaying(false);
        return;
      }
      requestAnimationFrame(advance);
    };
    requestAnimationFrame(advance);
  }

  pause() {
    this.setPlaying(false);
  }

  toggle() {
    if (this.playing) {
      this.pause();
    } else {
      this.play();
    }
  }

  setPlaying(playing) {
    this.playing = playing;
    this.button.setAttribute("aria-label", playing ? "Pause" : "Play");
    this.element.classList.toggle("replay-plays", playing);
  }

  // -- controls -----------------------------------------------------------------------------

  connect() {
    const find = (name) => this.element.querySelector(".replay-" + name);
    this.button = find("play");
    this.slider = find("slider");
    this.clock = find("clock");
    this.speed = find("speed");
    this.loop = find("loop");
    this.mode = find("mode");
    this.addEvents(find("events"));
    this.items = new Map();
    find("joints").querySelectorAll("li").forEach((item, k) => {
      this.items.set(this.data.joints[k].name, item);
    });
    this.button.addEventListener("click", () => this.toggle());
    this.slider.addEventListener("input", () => {
      this.pause();
      this.seek(Number(this.slider.value));
    });
    find("home").addEventListener("click", () => this.view.turnHome());
    this.connectSwitch("ghost", this.ghost);
    this.connectSwitch("traces", this.data.traces ? [this.node("traces").object] : []);
    this.connectSwitch("arrows", this.data.arrows.length ? [this.node("arrows").object] : []);
    this.connectSwitch("marks", this.data.joints.length ? [this.node("joints").object] : []);
    this.layers.forEach((layer, k) => this.connectSwitch("layer-" + k, [layer]));
    this.pane.addEventListener("pointerdown", () => (this.viewer.controls.enableZoom = true));
    this.pane.addEventListener("pointerleave", () => (this.viewer.controls.enableZoom = false));
  }

  // Marks below the bar of time, at the places of its thumb; labels where there is room for them.
  addEvents(bar) {
    const marks = this.data.events.map(([time, label]) => {
      const mark = document.createElement("button");
      const text = document.createElement("span");
      Object.assign(mark, { type: "button", title: this.timeText(time) + ": " + label });
      mark.setAttribute("aria-label", mark.title);
      const [first, ...others] = label.split(", ");
      text.textContent = others.length ? first + " +" + others.length : first;
      mark.append(text);
      mark.addEventListener("click", () => {
        this.pause();
        this.seek(time);
      });
      bar.append(mark);
      return { mark, text, part: (time - this.start) / (this.end - this.start || 1) };
    });
    const layOut = () => {
      const [room, rows] = [bar.clientWidth - 16, [-Infinity, -Infinity, -Infinity]];
      for (const { mark, text, part } of marks) {
        const x = 8 + part * room;
        mark.style.left = x + "px";
        text.style.visibility = "visible";
        const width = text.offsetWidth;
        const left = Math.max(0, Math.min(x - width / 2, bar.clientWidth - width));
        const row = rows.findIndex((end) => end + 8 < left);
        text.style.visibility = row < 0 ? "hidden" : "visible";
        if (row >= 0) {
          rows[row] = left + width;
          text.style.left = left - x + "px";
          text.style.top = 10 + 16 * row + "px";
        }
      }
      const used = rows.filter((end) => end > -Infinity).length;
      bar.style.height = marks.length ? 12 + 16 * used + "px" : "0";
    };
    if (marks.length) {
      new ResizeObserver(layOut).observe(bar);
    }
  }

  connectSwitch(name, objects) {
    const box = this.element.querySelector(".replay-show-" + name);
    if (box === null) {
      return;
    }
    const apply = () => {
      objects.forEach((object) => (object.visible = box.checked));
      this.viewer.set_dirty();
    };
    box.addEventListener("change", apply);
    apply();
  }

  // A picture for paper, which shows no live one.
  still() {
    this.element.querySelector(".replay-still").src = this.viewer.capture_image();
  }
}

function startReplay(element) {
  const data = JSON.parse(element.querySelector(".replay-data").textContent);
  try {
    element.replay = new Replay(element, data);
    requestAnimationFrame(() => requestAnimationFrame(() => element.replay.still()));
  } catch (error) {
    // Numbers and plots do not need it: a browser without 3D graphics shows the rest of the page.
    element.classList.add("replay-failed");
    console.warn("no replay: " + error);
  }
}

// Space plays the replay that has the focus, or the only one in the window.
document.addEventListener("keydown", (event) => {
  const typing = "button, select, textarea, a, summary, input:not([type=range])";
  if (event.key !== " " || event.target.closest(typing) !== null) {
    return;
  }
  const seen = [...document.querySelectorAll(".replay-ready")].filter((element) => {
    const { top, bottom, height } = element.getBoundingClientRect();
    return height > 0 && top < window.innerHeight && bottom > 0;
  });
  const own = event.target.closest(".replay-ready") ?? (seen.length === 1 ? seen[0] : null);
  if (own !== null) {
    event.preventDefault();
    own.replay.toggle();
  }
});

// Those that are hidden are started by the script that shows them.
for (const element of document.querySelectorAll(".replay")) {
  if (element.closest("[hidden]") === null) {
    startReplay(element);
  }
}
