"use strict";
// A MeshCat viewer that fills an element, whatever becomes of the window.

// Width over height of the narrowest picture that a scene is fitted for.
const FITTED = 1.25;

function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

class Pane {
  constructor(element, commands) {
    this.element = element;
    this.away = 1;  // how many times farther the camera is than where the scene was fitted
    this.viewer = new MeshCat.Viewer(element);
    this.viewer.set_3d_pane_size = () => this.fit();
    this.viewer.gui.domElement.style.display = "none";  // the pages have controls of their own
    for (const command of commands) {
      this.viewer.handle_command_bytearray(bytesOf(command));
    }
    this.home = this.viewer.camera.position.clone();
    this.turnHome();
    new ResizeObserver(() => this.fit()).observe(element);
  }

  // The camera back to where the scene was fitted for; or around another middle, farther away, and
  // from another side.
  turnHome(middle = [0, 0, 0], distance = 1, side = this.home) {
    const { camera, controls } = this.viewer;
    this.away = 1;
    const place = side.clone().setLength(distance * this.home.length());
    controls.target.set(...middle);
    camera.position.copy(place).add(controls.target);
    this.fit();
  }

  // The same from the side from which the camera looks now.
  turnTo(middle, distance) {
    const { camera, controls } = this.viewer;
    this.turnHome(middle, distance, camera.position.clone().sub(controls.target));
  }

  // Whether all that is seen of some nodes is within the picture.
  holds(paths) {
    const { camera, scene } = this.viewer;
    scene.updateMatrixWorld(true);
    let inside = true;
    for (const path of paths) {
      this.node(path).object.traverseVisible((object) => {
        if (!object.isMesh) {
          return;
        }
        object.geometry.computeBoundingBox();
        const { min, max } = object.geometry.boundingBox;
        for (let corner = 0; corner < 8; corner += 1) {
          const point = min.clone().set(
            corner & 1 ? min.x : max.x, corner & 2 ? min.y : max.y, corner & 4 ? min.z : max.z
          );
          point.applyMatrix4(object.matrixWorld).project(camera);
          inside = inside && Math.abs(point.x) <= 1 && Math.abs(point.y) <= 1;
        }
      });
    }
    return inside;
  }

  // Wherever the camera is: in a picture that is narrower it goes back, in a wider one it comes.
  fit() {
    const [width, height] = [this.element.clientWidth, this.element.clientHeight];
    if (width === 0 || height === 0) {
      return;
    }
    const { camera, controls, renderer } = this.viewer;
    const away = Math.max(1, (FITTED * height) / width);
    camera.position.sub(controls.target).multiplyScalar(away / this.away).add(controls.target);
    this.away = away;
    camera.aspect = width / height;
    camera.updateProjectionMatrix();
    renderer.setSize(width, height);
    this.viewer.set_dirty();
  }

  node(path) {
    return this.viewer.scene_tree.find(path.split("/").filter((step) => step.length > 0));
  }
}
