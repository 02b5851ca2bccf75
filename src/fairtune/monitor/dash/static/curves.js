// Curves by arm: the mean over an arm's finished runs with the band from lowest to highest, and thin lines for runs under way.
import { byId, make, patchList, setHidden, setText } from "./dom.js";
import * as choice from "./choice.js";
import { colourOf, dashOf, formats, loss, tick, value } from "./numbers.js";

const BANDS = 8, LOSSES = 4, DOTS = 14, TOLD = 8, MANY = 24, HEIGHT = 260, LOW = 210;
const plots = new Map();
let last = null, until = 0;
const small = (text) => (/^[A-Z][a-z]/.test(text) ? text[0].toLowerCase() + text.slice(1) : text);
const hasPoints = (arm) => arm.steps.length > 0 || (arm.single ?? []).some(([, points]) => points.length > 0);

export function beginCurves() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  choice.onPoint((arm) => { for (const plot of plots.values()) plot.point(arm); });
}

function redraw() {
  for (const plot of plots.values()) plot.drop();
  if (last) drawCurves(last, until);
}

// Args: steps that the longest run has; the axis ends there from the start, so that curves grow into it.
export function drawCurves(curves, steps) {
  [last, until] = [curves, steps];
  const losses = curves?.losses ?? [], panels = [];
  if (curves?.scores?.length) panels.push({ key: "scores", heading: `Validation ${small(formats.heading)}${formats.lower_is_better ? ", lower is better" : ""}`, arms: curves.scores, factor: formats.factor, write: (at) => value(at / formats.factor) });
  losses.slice(0, LOSSES).forEach(([name, arms]) => panels.push({ key: `loss ${name}`, heading: `Training loss ${name.trim()}`.trim(), arms, factor: 1, write: loss }));
  const drawn = panels.filter((panel) => panel.arms.some(hasPoints));
  setHidden(byId("curves"), !drawn.length);
  patchList(byId("panels"), drawn, (panel) => panel.key, (panel) => {
    const box = make("div", "plot-box"), made = make("figure", "panel", make("figcaption"), box);
    plots.set(panel.key, new Plot(box));
    made.key = panel.key;
    return made;
  }, (made, panel) => {
    setText(made.firstChild, panel.heading);
  });
  for (const key of [...plots.keys()]) if (!drawn.some((panel) => panel.key === key)) { plots.get(key).end(); plots.delete(key); }
  for (const panel of drawn) plots.get(panel.key).draw({ ...panel, steps });
  const bands = drawn.some((panel) => panel.arms.filter((arm) => choice.isShown(arm.arm)).length > BANDS) ? ` Bands are drawn for ${BANDS} arms or fewer: hide or filter some.` : "";
  const more = losses.length > LOSSES ? ` ${losses.length - LOSSES} further kinds of loss are left out.` : "";
  setText(byId("curves-key"), `Over optimizer steps. Thick: the mean over an arm\u2019s finished runs, or over those under way where none has finished, as far as all of them have come; the band is from lowest to highest. Thin: other runs, each for itself.${bands}${more}`);
}

class Plot {
  constructor(box) {
    this.box = box;
    this.tip = make("div", "tip");
    this.tip.hidden = true;
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(box);
  }

  get size() {
    return { width: Math.max(120, this.box.clientWidth), height: innerWidth < 640 ? LOW : HEIGHT };
  }

  fit() {
    const size = this.size;
    if (this.plot && (this.plot.width !== size.width || this.plot.height !== size.height)) this.plot.setSize(size);
  }

  drop() {
    this.plot?.destroy();
    this.plot = null;
  }

  end() {
    this.observer.disconnect();
    this.drop();
  }

  draw(panel) {
    this.panel = panel;
    this.arms = panel.arms.filter((arm) => (panel.own || choice.isShown(arm.arm)) && hasPoints(arm)).sort((a, b) => b.place - a.place); // the reference on top
    const banded = this.arms.length <= BANDS;
    this.thin = this.arms.map((arm) => (banded || this.arms.length === 1 ? arm.single ?? [] : (arm.single ?? []).slice(0, 1)));
    const kind = this.arms.map((arm, at) => [arm.arm, banded && arm.n > 1, arm.steps.length <= DOTS, this.thin[at].map(([seed]) => seed)].join("\u0000")).join("\u0001");
    const data = this.data(banded);
    this.box.dataset.points = String(this.arms.reduce((sum, arm, at) => sum + arm.steps.length + this.thin[at].reduce((own, [, points]) => own + points.length, 0), 0));
    if (this.plot && kind === this.kind) this.plot.setData(data);
    else {
      this.drop();
      this.kind = kind;
      this.plot = new uPlot(this.options(banded), data, this.box);
      this.plot.over.append(this.tip);
    }
  }

  data(banded) {
    const own = this.thin.flat().flatMap(([, points]) => points.map(([step]) => step));
    const steps = [...new Set([...this.arms.flatMap((arm) => arm.steps), ...own])].sort((a, b) => a - b), place = new Map(steps.map((step, at) => [step, at]));
    const { factor } = this.panel, data = [steps];
    // What an arm has no step for is left open (undefined), and lines pass over it; a value that is no number (null) is a gap.
    const spread = (at, values) => {
      const row = new Array(steps.length);
      values.forEach((one, index) => { row[place.get(at[index])] = one === null ? null : factor * one; });
      return row;
    };
    this.arms.forEach((arm, index) => {
      data.push(spread(arm.steps, arm.mean));
      if (banded && arm.n > 1) data.push(spread(arm.steps, arm.low), spread(arm.steps, arm.high));
      for (const [, points] of this.thin[index]) data.push(spread(points.map(([step]) => step), points.map(([, one]) => one)));
    });
    return data;
  }

  options(banded) {
    const style = getComputedStyle(document.documentElement), soft = style.getPropertyValue("--soft").trim(), line = style.getPropertyValue("--line").trim();
    const series = [{}], bands = [];
    this.at = new Map();
    const crowd = this.arms.length > MANY;
    this.arms.forEach((arm, index) => {
      const stroke = colourOf(arm.place), dash = dashOf(arm.place);
      this.at.set(arm.arm, series.length);
      const faint = crowd && arm.place > 0; // of very many, each is a shade; the one that is pointed at comes out
      series.push({ stroke: faint ? `${stroke}70` : stroke, dash, width: faint ? 1 : 2, points: { show: !crowd && arm.steps.length <= DOTS, size: 5, fill: stroke } });
      if (banded && arm.n > 1) {
        const edge = { stroke: "transparent", width: 0, points: { show: false } };
        series.push(edge, { ...edge });
        bands.push({ series: [series.length - 1, series.length - 2], fill: `${stroke}2b` });
      }
      for (const [, points] of this.thin[index]) series.push({ stroke: `${stroke}b0`, dash, width: 1, points: { show: points.length <= DOTS, size: 3.5, fill: `${stroke}b0` } });
    });
    const axis = { stroke: soft, font: "12px system-ui, sans-serif", grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 } };
    const { size } = this;
    return {
      ...size, series, bands,
      legend: { show: false },
      focus: { alpha: 0.15 },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: { x: { time: false, range: (_, low, high) => [0, Math.max(high ?? 0, this.panel.steps ?? 0, 1)] } },
      axes: [
        { ...axis, size: 30, gap: 3, values: (_, splits) => splits.map((at) => (at === null || !Number.isInteger(at) ? "" : tick(at))) },
        { ...axis, size: (_, values) => 14 + 7 * Math.max(2, ...(values ?? []).map((text) => text.length)), gap: 3, values: (_, splits) => splits.map((at) => (at === null ? "" : tick(at))) },
      ],
      hooks: { setCursor: [() => this.tell()] },
    };
  }

  point(arm) {
    if (this.plot && this.arms.length > 1) this.plot.setSeries(arm !== null && this.at.has(arm) ? this.at.get(arm) : null, { focus: true }, false);
  }

  // The arms nearest to the pointer, at its step.
  tell() {
    const { left, top, idx } = this.plot.cursor;
    this.tip.hidden = idx === null || idx === undefined || left < 0;
    if (this.tip.hidden) return;
    const step = this.plot.data[0][idx], { factor, write } = this.panel, rows = [];
    for (const arm of this.arms) {
      let at = arm.steps.length - 1;
      while (at >= 0 && arm.steps[at] > step) at -= 1;
      if (at < 0 || arm.mean[at] === null || step > arm.steps[arm.steps.length - 1]) continue;
      rows.push({ arm, at, far: Math.abs(this.plot.valToPos(factor * arm.mean[at], "y") - top), mean: factor * arm.mean[at] });
    }
    const near = rows.sort((a, b) => a.far - b.far).slice(0, TOLD).sort((a, b) => b.mean - a.mean);
    this.tip.replaceChildren(make("b", "", `step ${tick(step)}`), ...near.map(({ arm, at, mean }) => {
      const mark = make("i"), row = make("div", "", mark, make("bdi", "", arm.arm.length > 24 ? `${arm.arm.slice(0, 23)}\u2026` : arm.arm), make("span", "", ` ${write(mean)}`), make("small", "", ` n ${arm.n}`));
      mark.style.background = colourOf(arm.place);
      return row;
    }));
    if (rows.length > near.length) this.tip.append(make("small", "", `and ${rows.length - near.length} more`));
    const right = left > this.plot.over.clientWidth / 2;
    this.tip.style.left = right ? "auto" : `${left + 12}px`;
    this.tip.style.right = right ? `${this.plot.over.clientWidth - left + 12}px` : "auto";
  }
}

// A run's own curve, in its panel; what is given back ends it.
export function drawOwn(box, heading, points, place, factor, until) {
  const inner = make("div", "plot-box"), plot = new Plot(inner);
  box.append(make("figure", "panel", make("figcaption", "", heading), inner));
  const steps = points.map(([step]) => step), mean = points.map(([, at]) => at);
  const arm = { arm: "this run", place, steps, mean, low: mean, high: mean, n: 1, single: [] };
  plot.draw({ own: true, steps: until, arms: [arm], factor, write: factor === 1 ? loss : (at) => value(at / factor) });
  return () => plot.end();
}
