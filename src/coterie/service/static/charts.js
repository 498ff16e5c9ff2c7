"use strict";
// Three small charts on canvas: a map of users, stacked sizes of clusters, and two lines.

function colourOf(cluster) {
  const hue = (cluster * 137.508) % 360;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return `hsl(${hue.toFixed(1)} 65% ${dark ? 62 : 43}%)`;
}

function fitted(canvas) {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  context.font = "12px system-ui, sans-serif";
  return { context, width, height, colour };
}

class UserMap {
  constructor(canvas, select) {
    this.canvas = canvas;
    this.dots = new Map(); // id -> {x, y, toX, toY, cluster, pulls}
    this.chosen = null;
    this.radius = 1;
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      const found = this.nearest(event.clientX - box.left, event.clientY - box.top);
      if (found !== null) select(found);
    });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const ids = [...this.dots.keys()];
      if (!step || !ids.length) return;
      event.preventDefault();
      select(ids[(ids.indexOf(this.chosen) + step + ids.length) % ids.length]);
    });
    const draw = () => { this.draw(); requestAnimationFrame(draw); };
    requestAnimationFrame(draw);
  }

  update(points) {
    const seen = new Set();
    let far = 1e-9;
    for (const [id, x, y, cluster, pulls] of points) {
      seen.add(id);
      far = Math.max(far, Math.abs(x), Math.abs(y));
      const dot = this.dots.get(id) || { x: 0, y: 0 };
      this.dots.set(id, Object.assign(dot, { toX: x, toY: y, cluster, pulls }));
    }
    for (const id of this.dots.keys()) if (!seen.has(id)) this.dots.delete(id);
    this.radius = this.radius === 1 ? far : Math.max(far, this.radius * 0.97);
    const clusters = new Set(points.map((point) => point[3])).size;
    this.canvas.setAttribute("aria-label", `Map of ${points.length} users in ${clusters} clusters`);
  }

  place(dot, width, height) {
    const unit = Math.min(width, height) / 2 - 14;
    return [width / 2 + (dot.x / this.radius) * unit * (width > height ? 1.5 : 1), height / 2 - (dot.y / this.radius) * unit];
  }

  nearest(x, y) {
    let best = null, least = 20 ** 2;
    for (const [id, dot] of this.dots) {
      const [px, py] = this.place(dot, this.canvas.clientWidth, this.canvas.clientHeight);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [id, distance];
    }
    return best;
  }

  draw() {
    const { context, width, height, colour } = fitted(this.canvas);
    for (const [id, dot] of this.dots) {
      dot.x += (dot.toX - dot.x) * 0.08;
      dot.y += (dot.toY - dot.y) * 0.08;
      const [x, y] = this.place(dot, width, height);
      context.beginPath();
      context.arc(x, y, 3.5 + Math.min(6, Math.log2(1 + dot.pulls) * 0.7), 0, 2 * Math.PI);
      context.globalAlpha = 0.8;
      context.fillStyle = colourOf(dot.cluster);
      context.fill();
      context.globalAlpha = 1;
      if (id === this.chosen) {
        context.lineWidth = 2;
        context.strokeStyle = colour("--ink");
        context.stroke();
        context.fillStyle = colour("--ink");
        context.fillText(id.slice(0, 40), Math.min(x + 12, width - 120), y + 4);
      }
    }
  }
}

function drawSizes(canvas, frames) {
  const { context, width, height, colour } = fitted(canvas);
  const bottom = height - 16;
  frames.forEach((frame, place) => {
    const left = (place / Math.max(frames.length, 60)) * width, wide = width / Math.max(frames.length, 60) + 0.6;
    let level = bottom;
    for (const [cluster, size] of [...frame.clusters].sort((a, b) => a[0] - b[0])) {
      const tall = (size / Math.max(frame.users, 1)) * (bottom - 4);
      context.fillStyle = colourOf(cluster);
      context.fillRect(left, level - tall, wide, tall);
      level -= tall;
    }
    const before = place ? frames[place - 1].n_clusters : frame.n_clusters;
    if (frame.n_clusters !== before) {
      context.fillStyle = colour("--faint");
      context.fillText(frame.n_clusters > before ? "▲" : "▼", left - 3, height - 3);
    }
  });
}

function drawLines(canvas, lines) {
  const { context, width, height, colour } = fitted(canvas);
  const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
  if (!values.length) return;
  const low = Math.min(0, ...values), high = Math.max(...values, low + 1e-9);
  const y = (value) => 8 + (1 - (value - low) / (high - low)) * (height - 16);
  context.fillStyle = colour("--faint");
  context.fillText(high.toPrecision(3), 2, y(high) + 10);
  context.fillText(low.toPrecision(3), 2, y(low) - 3);
  for (const line of lines) {
    context.beginPath();
    context.lineWidth = 2;
    context.strokeStyle = colour(line.colour);
    let pen = false;
    line.values.forEach((value, place) => {
      if (value === null) return;
      const x = (place / Math.max(line.values.length - 1, 59)) * width;
      pen ? context.lineTo(x, y(value)) : context.moveTo(x, y(value));
      pen = true;
    });
    context.stroke();
  }
}
