// Drawing: canvases that follow their size, and the colours of the theme.

let cached = null;

const NAMES = ["ink", "muted", "line", "surface", "raised", "density", "good", "busy", "bad", "none", "accent"];

/** Return the colours of the style sheet that apply now. */
export function themeColors() {
  if (cached) return cached;
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = (name) => {
    probe.style.color = style.getPropertyValue(name).trim();
    return getComputedStyle(probe).color;
  };
  cached = Object.fromEntries(NAMES.map((name) => [name, read(`--${name}`)]));
  cached.hues = Array.from({ length: 10 }, (_, index) => read(`--hue-${index}`));
  cached.font = style.getPropertyValue("--font").trim();
  probe.remove();
  return cached;
}

function forget() {
  cached = null;
}
addEventListener("themechange", forget);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  forget();
  dispatchEvent(new Event("themechange"));
});

/** Draw on a canvas in CSS pixels, and again when its size or the theme changes; return the function that ends that. */
export function drawOn(canvas, draw) {
  return drawing(canvas, draw).stop;
}

/** The same; return `redraw`, which draws again in the next frame, and `stop`. */
export function drawing(canvas, draw) {
  if (!canvas) return { redraw: () => undefined, stop: () => undefined }; // its view was left already
  let frame = 0;
  const paint = () => {
    frame = 0;
    const ratio = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context, width, height);
  };
  const request = () => {
    if (!frame) frame = requestAnimationFrame(paint);
  };
  const observer = new ResizeObserver(request);
  observer.observe(canvas);
  addEventListener("themechange", request);
  request();
  const stop = () => {
    observer.disconnect();
    removeEventListener("themechange", request);
    cancelAnimationFrame(frame);
  };
  return { redraw: request, stop };
}

/** Return where an event is, in the pixels of an element. */
export function pointIn(element, event) {
  const box = element.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/** Add the handlers of events, by their names; return the function that removes them. */
export function handle(element, handlers) {
  for (const [name, handler] of Object.entries(handlers)) element.addEventListener(name, handler, { passive: false });
  return () => {
    for (const [name, handler] of Object.entries(handlers)) element.removeEventListener(name, handler);
  };
}

/** Return the style of a tip beside a point of an element: on the side that has more room. */
export function tipStyle(element, x, y) {
  const { clientWidth: width, clientHeight: height } = element;
  return {
    [x > width / 2 ? "right" : "left"]: `${x > width / 2 ? width - x + 13 : x + 13}px`,
    [y > height / 2 ? "bottom" : "top"]: `${y > height / 2 ? height - y + 10 : y + 10}px`,
  };
}
