"use strict";
(() => {
  const entries = JSON.parse(document.getElementById("data").textContent);
  const table = document.getElementById("goldens");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.querySelectorAll("tr.golden")];
  const search = document.getElementById("search");
  document.querySelector(".tools").hidden = false;

  const node = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const shape = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Search and filter

  const words = rows.map((row) => {
    const entry = entries[row.dataset.i];
    const facts = entry.facts.map((f) => f.join(" ")).join(" ");
    const metrics = entry.metrics.map((m) => m.name).join(" ");
    return `${row.textContent} ${entry.path} ${entry.note} ${metrics} ${facts}`.toLowerCase();
  });
  let only = "";

  function filter() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      const fits = (!only || row.dataset.only === only) && wanted.every((word) => words[i].includes(word));
      row.hidden = !fits;
      row.style.display = fits ? "" : "none";
      if (row.detail) row.detail.style.display = fits ? "" : "none";
      shown += fits;
    });
    document.getElementById("shown").textContent = `${shown} of ${rows.length}`;
    document.getElementById("nothing").hidden = shown > 0;
  }

  search.addEventListener("input", filter);
  for (const chip of document.querySelectorAll(".chips button")) {
    chip.addEventListener("click", () => {
      only = only === chip.dataset.only ? "" : chip.dataset.only;
      for (const other of document.querySelectorAll(".chips button")) {
        other.setAttribute("aria-pressed", String(other.dataset.only === only));
      }
      filter();
    });
  }

  // Sort

  const keys = {
    size: (row) => Number(row.dataset.size),
    nan: (row) => Number(row.dataset.nan),
  };
  const cellText = (row, key) => (row.querySelector(`.c-${key}`) || { textContent: "" }).textContent.trim();
  const order = new Intl.Collator("en", { numeric: true });

  for (const button of table.tHead.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const key = button.dataset.key;
      const numbers = key in keys;
      const first = numbers ? "descending" : "ascending";
      const second = numbers ? "ascending" : "descending";
      const direction = head.getAttribute("aria-sort") === first ? second : first;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction);
      const compare = numbers
        ? (a, b) => keys[key](a) - keys[key](b)
        : (a, b) => order.compare(cellText(a, key), cellText(b, key));
      const sign = direction === "ascending" ? 1 : -1;
      const sorted = [...rows].sort((a, b) => sign * compare(a, b) || a.dataset.i - b.dataset.i);
      for (const row of sorted) body.append(row, ...(row.detail ? [row.detail] : []));
    });
  }

  // Details

  function toggle(row, open = !row.detail) {
    row.querySelector(".open").setAttribute("aria-expanded", String(open));
    if (open && !row.detail) {
      row.detail = detail(entries[row.dataset.i]);
      row.after(row.detail);
      drawAll(row.detail);
    } else if (!open && row.detail) {
      row.detail.remove();
      row.detail = null;
    }
  }

  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr.golden");
    if (row && !String(getSelection())) toggle(row);
  });

  function detail(entry) {
    const cell = node("td", { colspan: "8" }, node("p", { class: "path" }, entry.path));
    if (entry.note) cell.append(node("p", { class: "note" }, entry.note));
    if (entry.facts.length) cell.append(factList(entry.facts));
    if (entry.metrics.length) cell.append(node("div", { class: "wide" }, figures(entry.metrics)));
    if (entry.more) cell.append(node("p", { class: "hint" }, `${entry.more} more metrics differ.`));
    if (entry.same.length) cell.append(node("p", { class: "hint" }, `The same on both sides: ${entry.same.join(", ")}`));
    const drawn = entry.metrics.filter((metric) => metric.s);
    if (drawn.length) cell.append(node("div", { class: "plots" }, ...drawn.map(figure)));
    return node("tr", { class: "detail" }, cell);
  }

  function factList(facts) {
    const parts = facts.map(([name, text, url]) => {
      const value = url ? node("a", { href: url, rel: "noreferrer" }, text) : text;
      return node("div", {}, node("dt", {}, name), node("dd", {}, value));
    });
    return node("dl", { class: "facts" }, ...parts);
  }

  function figures(metrics) {
    const names = ["metric", "steps", "difference", "largest", "mean signed", "at step", "old → new", "NaN", "verdict"];
    const head = node("tr", {}, ...names.map((name) => node("th", { scope: "col" }, name)));
    const lines = metrics.map((m) => {
      const nan = m.nan[0] || m.nan[1] ? `${m.nan[0]} → ${m.nan[1]}` : "";
      const cells = [m.name, m.steps, m.size, m.max, m.mean, m.place === null ? "" : String(m.place), m.pair, nan];
      const verdict = node("td", { class: `v-${m.verdict.replace(" ", "-")}` }, m.verdict);
      return node("tr", {}, ...cells.map((text) => node("td", {}, text)), verdict);
    });
    return node("table", { class: "figures" }, node("thead", {}, head), node("tbody", {}, ...lines));
  }

  function figure(metric) {
    const key = node("span", { class: "key" });
    if (metric.a.length) key.append(node("i", {}), "old");
    if (metric.b.length) key.append(node("i", { class: "n" }), "new");
    const made = node("figure", { "data-m": metric.name }, node("figcaption", {}, node("b", {}, metric.name), key));
    made.append(node("div", { class: "plot" }), node("output", {}));
    made.metric = metric;
    return made;
  }

  // Curves

  const LEFT = 64, RIGHT = 10, TOP = 8, MAIN = 150, GAP = 14, BELOW = 62, FOOT = 20, STRIP = 7;
  const finite = (values) => values.filter((v) => v !== null);

  function drawAll(place) {
    for (const made of place.querySelectorAll("figure")) draw(made);
  }

  function draw(made) {
    const metric = made.metric;
    const width = Math.max(240, made.querySelector(".plot").clientWidth);
    const strips = (metric.na.length ? STRIP + 3 : 0) + (metric.nb.length ? STRIP + 3 : 0);
    const relative = finite(metric.r).some((v) => v !== 0);
    const mainEnd = TOP + MAIN, stripEnd = mainEnd + strips;
    const belowStart = stripEnd + GAP, belowEnd = relative ? belowStart + BELOW : stripEnd;
    const height = belowEnd + FOOT;
    const image = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: "0" });
    image.append(shape("title", {}, `${metric.name}, old and new`));
    const steps = metric.s;
    const ends = [steps[0], steps[steps.length - 1]];
    const x = (step) => LEFT + ((step - ends[0]) / (ends[1] - ends[0] || 1)) * (width - LEFT - RIGHT);
    const y = scale([...finite(metric.a), ...finite(metric.b)], mainEnd, TOP);

    frame(image, width, TOP, mainEnd, y);
    if (y.log) image.append(shape("text", { x: width - RIGHT, y: TOP + 14, "text-anchor": "end" }, "logarithmic"));
    line(image, "old", steps, metric.a, x, y.at);
    line(image, "new", steps, metric.b, x, y.at);
    let strip = mainEnd + 3;
    for (const [ranges, kind, label] of [[metric.na, "mark was", "NaN old"], [metric.nb, "mark", "NaN new"]]) {
      if (!ranges.length) continue;
      image.append(shape("text", { x: LEFT - 6, y: strip + STRIP, "text-anchor": "end" }, label));
      for (const [first, last] of ranges) {
        image.append(shape("rect", { class: kind, x: x(first) - 1.5, y: strip, width: x(last) - x(first) + 3, height: STRIP }));
      }
      strip += STRIP + 3;
    }
    if (relative) {
      const span = Math.max(...finite(metric.r).map(Math.abs));
      const yr = { at: (v) => (belowStart + belowEnd) / 2 - (v / span) * (BELOW / 2 - 3), ticks: [span, 0, -span] };
      yr.format = (v) => (v === 0 ? "0" : percent(v));
      frame(image, width, belowStart, belowEnd, yr);
      image.append(shape("line", { class: "zero", x1: LEFT, x2: width - RIGHT, y1: yr.at(0), y2: yr.at(0) }));
      line(image, "relative", steps, metric.r, x, yr.at);
    }
    for (const [step, anchor] of [[ends[0], "start"], [ends[1], "end"]]) {
      image.append(shape("text", { x: x(step), y: height - 5, "text-anchor": anchor }, `step ${step}`));
    }
    const cursor = shape("line", { class: "cursor", y1: TOP, y2: belowEnd });
    image.append(cursor);
    watch(made, image, cursor, x, width);
    made.querySelector(".plot").replaceChildren(image);
  }

  function frame(image, width, top, bottom, y) {
    image.append(shape("path", { class: "axis", d: `M${LEFT} ${top}V${bottom}H${width - RIGHT}` }));
    for (const tick of y.ticks) {
      const place = y.at(tick);
      image.append(shape("line", { class: "axis", x1: LEFT - 4, x2: width - RIGHT, y1: place, y2: place }));
      image.append(shape("text", { x: LEFT - 7, y: place + 4, "text-anchor": "end" }, y.format(tick)));
    }
  }

  function line(image, kind, steps, values, x, y) {
    let path = "", pen = false, alone = -1;
    const dots = [];
    values.forEach((value, i) => {
      if (value === null) {
        if (alone >= 0) dots.push(alone);
        pen = false;
        alone = -1;
        return;
      }
      path += `${pen ? "L" : "M"}${x(steps[i]).toFixed(1)} ${y(value).toFixed(1)}`;
      alone = pen ? -1 : i;
      pen = true;
    });
    if (alone >= 0) dots.push(alone);
    image.append(shape("path", { class: kind, d: path || "M0 0" }));
    for (const i of dots) image.append(shape("circle", { class: `dot ${kind}`, cx: x(steps[i]), cy: y(values[i]), r: 2.5 }));
  }

  // A first step hundreds of times the rest (warm-up) would flatten everything else: such curves get a logarithmic axis.
  function scale(values, bottom, top) {
    let low = Math.min(...values), high = Math.max(...values);
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted[sorted.length >> 1];
    const log = low > 0 && high > 8 * middle;
    if (!values.length) [low, high] = [0, 1];
    if (low === high) {
      const room = Math.abs(low) * 0.01 || 1;
      [low, high] = [low - room, high + room];
    }
    const f = log ? Math.log10 : (v) => v;
    const [a, b] = [f(low), f(high)];
    const at = (v) => bottom - 4 - ((f(v) - a) / (b - a)) * (bottom - top - 8);
    const ticks = log ? [low, 10 ** ((a + b) / 2), high] : rounded(low, high);
    const digits = log ? 2 : Math.min(7, Math.max(1, 1 + Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / ticks.step))));
    return { at, ticks, log, format: (v) => plain(v, digits) };
  }

  function rounded(low, high) {
    const raw = (high - low) / 4;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw);
    const ticks = [];
    for (let k = Math.ceil(low / step); k * step <= high; k += 1) ticks.push(k * step);
    ticks.step = step;
    return ticks;
  }

  const UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]];

  function plain(value, digits) {
    const size = Math.abs(value);
    if (size !== 0 && size < 1e-4) return value.toExponential(1);
    const [by, unit] = UNITS.find(([limit]) => size >= limit) || [1, ""];
    const factor = unit === "k" ? 1e3 : by;
    return String(Number((value / factor).toPrecision(digits))) + unit;
  }

  function percent(value) {
    const size = Math.abs(value) * 100;
    return `${size < 0.001 ? (value * 100).toExponential(0) : Number((value * 100).toPrecision(2))} %`;
  }

  function watch(made, image, cursor, x, width) {
    const metric = made.metric;
    const output = made.querySelector("output");
    let at = -1;
    const say = (i) => {
      at = Math.max(0, Math.min(metric.s.length - 1, i));
      const place = x(metric.s[at]);
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      cursor.style.visibility = "visible";
      const value = (side) => (side.length ? (side[at] === null ? "none" : String(side[at])) : "");
      const parts = [`step ${metric.s[at]}`];
      if (metric.a.length) parts.push(`old ${value(metric.a)}`);
      if (metric.b.length) parts.push(`new ${value(metric.b)}`);
      if (metric.r.length && metric.r[at] !== null) parts.push(percent(metric.r[at]));
      output.textContent = parts.join(" · ");
    };
    image.addEventListener("pointermove", (event) => {
      const box = image.getBoundingClientRect();
      const target = ((event.clientX - box.left) / box.width) * width;
      let best = 0;
      metric.s.forEach((step, i) => {
        if (Math.abs(x(step) - target) < Math.abs(x(metric.s[best]) - target)) best = i;
      });
      say(best);
    });
    image.addEventListener("pointerleave", () => {
      cursor.style.visibility = "hidden";
      output.textContent = "";
    });
    image.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (move) {
        event.preventDefault();
        say(at + move);
      }
    });
  }

  // From the heat map to the curves

  const heat = document.querySelector(".heat");
  if (heat) {
    heat.addEventListener("click", (event) => {
      const cell = event.target.closest("td[data-m], tbody th");
      if (!cell) return;
      search.value = "";
      only = "";
      for (const chip of document.querySelectorAll(".chips button")) chip.setAttribute("aria-pressed", "false");
      filter();
      const row = rows[Number(cell.parentElement.dataset.i)];
      toggle(row, true);
      const made = [...row.detail.querySelectorAll("figure")].find((f) => f.dataset.m === cell.dataset.m);
      for (const other of document.querySelectorAll("figure.aim")) other.classList.remove("aim");
      if (made) made.classList.add("aim");
      (made || row).scrollIntoView({ block: "center" });
    });
  }

  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => drawAll(body), 150);
  });
  filter();
  if (rows.length === 1) toggle(rows[0], true);
})();
