// The picture of the map. Many points are written as pixels: 20,000 of them fit into a frame.

/** @typedef {{x: number, y: number, zoom: number}} View the middle of the picture, from 0 to 1 */
/** @typedef {[number, number][]} Polygon corners in the coordinates of the map */
/** @typedef {{xs: number[], ys: number[], tone: number[], regions: any[]}} Points */
/** @typedef {{colors: string[], tones: Uint32Array, pale: Uint32Array, text: string, halo: string, line: string}} Palette */

const ROOM = 0.92;
/** Up to so many points are drawn one by one, which looks better and takes longer. */
const FEW_POINTS = 2000;

/** Make the functions between the map and the picture. @param {View} view @param {number} width @param {number} height */
export function projection(view, width, height) {
  const [sx, sy] = [width * ROOM * view.zoom, height * ROOM * view.zoom];
  return {
    toPicture: (x, y) => [(x - view.x) * sx + width / 2, (y - view.y) * sy + height / 2],
    toMap: (left, top) => [(left - width / 2) / sx + view.x, (top - height / 2) / sy + view.y],
  };
}

/** Read a colour of the page, such as rgb(1, 2, 3), as a pixel. @param {string} color @param {number} [alpha] */
function pixel(color, alpha = 255) {
  const [r, g, b] = (color.match(/[\d.]+/g) ?? ["128", "128", "128"]).map(Number);
  return ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** Read the colours from the legend. @param {HTMLElement} box the element around legend and canvas @returns {Palette} */
export function readPalette(box) {
  const keys = [...box.querySelectorAll("[data-tone]")].map((each) => getComputedStyle(each).backgroundColor);
  const style = getComputedStyle(box);
  return {
    colors: keys,
    tones: Uint32Array.from(keys, (each) => pixel(each)),
    pale: Uint32Array.from(keys, (each) => pixel(each, 70)),
    text: style.color,
    halo: style.backgroundColor,
    line: style.outlineColor,
  };
}

/** The pixels of a disc around its middle. @param {number} radius @param {number} width */
function disc(radius, width) {
  const offsets = [];
  for (let y = -radius; y <= radius; y += 1) {
    for (let x = -radius; x <= radius; x += 1) if (x * x + y * y <= (radius + 0.35) ** 2) offsets.push(y * width + x);
  }
  return Int32Array.from(offsets);
}

/** @type {ImageData | null} */
let image = null;

/**
 * Draw the map.
 * @param {HTMLCanvasElement} canvas
 * @param {{points: Points, view: View, palette: Palette, picked: Uint8Array | null, drawn: Polygon, density: number}} scene
 * @returns {number} the milliseconds that it took
 */
export function paint(canvas, { points, view, palette, picked, drawn, density }) {
  const started = performance.now();
  const context = canvas.getContext("2d");
  const { width, height } = canvas;
  if (!context || !width || !height) return 0;
  const { xs } = points;
  const size = xs.length > 5000 ? 1.3 : xs.length > FEW_POINTS ? 2 : 3.5;
  const radius = Math.max(1, Math.min(7, size * density * Math.sqrt(view.zoom)));
  if (xs.length > FEW_POINTS) paintPixels(context, points, view, palette, picked, Math.round(radius));
  else paintDiscs(context, points, view, palette, picked, radius);
  label(context, points.regions, view, palette, density);
  outline(context, drawn, view, palette, density);
  return performance.now() - started;
}

/** Draw many points as pixels: the chosen ones last, above the others. @param {CanvasRenderingContext2D} context @param {Points} points @param {View} view @param {Palette} palette @param {Uint8Array | null} picked @param {number} radius */
function paintPixels(context, { xs, ys, tone }, view, palette, picked, radius) {
  const { width, height } = context.canvas;
  if (image?.width !== width || image.height !== height) image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(0);
  const offsets = disc(radius, width);
  const [sx, sy] = [width * ROOM * view.zoom, height * ROOM * view.zoom];
  const [left, top] = [width / 2 - view.x * sx, height / 2 - view.y * sy];
  for (let round = 0; round < (picked ? 2 : 1); round += 1) {
    const colors = picked && !round ? palette.pale : palette.tones;
    for (let at = 0; at < xs.length; at += 1) {
      if (picked && picked[at] !== round) continue;
      const x = Math.round(xs[at] * sx + left);
      const y = Math.round(ys[at] * sy + top);
      if (x < radius || y < radius || x >= width - radius || y >= height - radius) continue;
      const middle = y * width + x;
      const color = colors[tone[at]];
      for (let each = 0; each < offsets.length; each += 1) pixels[middle + offsets[each]] = color;
    }
  }
  context.putImageData(image, 0, 0);
}

/** Draw few points as round discs, the chosen ones last. @param {CanvasRenderingContext2D} context @param {Points} points @param {View} view @param {Palette} palette @param {Uint8Array | null} picked @param {number} radius */
function paintDiscs(context, { xs, ys, tone }, view, palette, picked, radius) {
  const { width, height } = context.canvas;
  const { toPicture } = projection(view, width, height);
  context.clearRect(0, 0, width, height);
  for (let round = 0; round < (picked ? 2 : 1); round += 1) {
    context.globalAlpha = picked && !round ? 0.15 : 0.75;
    for (let at = 0; at < xs.length; at += 1) {
      if (picked && picked[at] !== round) continue;
      const [x, y] = toPicture(xs[at], ys[at]);
      context.fillStyle = palette.colors[tone[at]];
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
    }
  }
  context.globalAlpha = 1;
}

/** Write the terms of regions, the largest first; a name that would cover another is left out. */
function label(context, regions, view, palette, density) {
  const { width, height } = context.canvas;
  const { toPicture } = projection(view, width, height);
  context.font = `600 ${12 * density}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 4 * density;
  const taken = [];
  for (const region of regions) {
    const text = region.terms.slice(0, 2).join(", ").slice(0, 40);
    const half = context.measureText(text).width / 2 + 4 * density;
    const [px, py] = toPicture(region.x, region.y);
    const [x, y] = [Math.max(half, Math.min(width - half, px)), py - 14 * density];
    if (!text || px < 0 || px > width || y < 0 || y > height) continue;
    if (taken.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - y) < 18 * density)) continue;
    taken.push({ x, y, half });
    context.strokeStyle = palette.halo;
    context.strokeText(text, x, y);
    context.fillStyle = palette.text;
    context.fillText(text, x, y);
  }
}

/** Draw the lasso. */
function outline(context, drawn, view, palette, density) {
  if (drawn.length < 2) return;
  const { toPicture } = projection(view, context.canvas.width, context.canvas.height);
  context.beginPath();
  drawn.forEach(([x, y], at) => {
    const [left, top] = toPicture(x, y);
    if (at) context.lineTo(left, top);
    else context.moveTo(left, top);
  });
  context.closePath();
  context.lineWidth = 1.5 * density;
  context.strokeStyle = palette.line;
  context.setLineDash([5 * density, 4 * density]);
  context.stroke();
  context.setLineDash([]);
}

/** Find the points within a polygon. @param {Points} points @param {Polygon} polygon @returns {Uint8Array} */
export function inside(points, polygon) {
  const found = new Uint8Array(points.xs.length);
  for (let at = 0; at < found.length; at += 1) {
    const [x, y] = [points.xs[at], points.ys[at]];
    let odd = false;
    for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
      const [xi, yi] = polygon[i];
      const [xj, yj] = polygon[j];
      if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
    }
    found[at] = odd ? 1 : 0;
  }
  return found;
}

/** Find the point nearest to a place of the picture. @param {Points} points @param {View} view @param {HTMLCanvasElement} canvas @param {number} left @param {number} top @param {number} most */
export function nearest(points, view, canvas, left, top, most) {
  const { toPicture } = projection(view, canvas.width, canvas.height);
  let best = -1;
  let distance = most * most;
  for (let at = 0; at < points.xs.length; at += 1) {
    const [x, y] = toPicture(points.xs[at], points.ys[at]);
    const far = (x - left) ** 2 + (y - top) ** 2;
    if (far < distance) [best, distance] = [at, far];
  }
  return best;
}

const MOST_CORNERS = 60;

/** Write a polygon for the address. @param {Polygon} polygon */
export function writePolygon(polygon) {
  const step = Math.max(1, Math.ceil(polygon.length / MOST_CORNERS));
  return polygon.filter((_, at) => at % step === 0).map((each) => each.map((value) => value.toFixed(3)).join(",")).join(";");
}

/** Read a polygon from the address. @param {string} text @returns {Polygon} */
export const readPolygon = (text) => text.split(";").slice(0, MOST_CORNERS * 2)
  .map((each) => /** @type {[number, number]} */ (each.split(",").map(Number)))
  .filter((each) => each.length === 2 && each.every(Number.isFinite));
