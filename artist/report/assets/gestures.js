// How a reader moves in the cluster timeline: wheel, drag, pinch and keys.

function startGestures(timeline) {
  const { canvas } = timeline;
  const pointers = new Map();
  const share = (clientX) => {
    const { left } = canvas.getBoundingClientRect();
    return (clientX - left - timeline.box.left) / (timeline.box.right - timeline.box.left);
  };
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    timeline.zoom(Math.exp(-event.deltaY * 0.004), share(event.clientX));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => timeline.zoom(3, share(event.clientX)));
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event);
    timeline.tell(event);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
  }
  canvas.addEventListener("pointerleave", () => timeline.release());
  canvas.addEventListener("pointermove", (event) => {
    if (pointers.has(event.pointerId)) drag(timeline, pointers, event, share);
    else timeline.tell(event);
  });
  canvas.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(timeline);
  });
}

const KEYS = {
  ArrowLeft: (timeline) => timeline.pan(-0.15),
  ArrowRight: (timeline) => timeline.pan(0.15),
  ArrowUp: (timeline) => timeline.pan(0, -0.15),
  ArrowDown: (timeline) => timeline.pan(0, 0.15),
  "+": (timeline) => timeline.zoom(1.6),
  "=": (timeline) => timeline.zoom(1.6),
  "-": (timeline) => timeline.zoom(1 / 1.6),
  0: (timeline) => timeline.reset(),
};

// One pointer moves the picture; two zoom it about the middle between them.
function drag(timeline, pointers, event, share) {
  const before = pointers.get(event.pointerId);
  const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId);
  pointers.set(event.pointerId, event);
  hideTooltip();
  if (other) {
    const gap = (p) => Math.max(20, Math.abs(p.clientX - other.clientX));
    timeline.zoom(gap(event) / gap(before), share((event.clientX + other.clientX) / 2));
    return;
  }
  const tall = timeline.box.bottom - timeline.box.top;
  const down = event.pointerType === "mouse" ? (before.clientY - event.clientY) / tall : 0;
  timeline.pan(share(before.clientX) - share(event.clientX), down);
}
