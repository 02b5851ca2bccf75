// Figures as the report writes them; how the study's metric is shown comes from the server.
import { DASH } from "./dom.js";

const MINUS = "\u2212", DIGITS = 4, MOST_PLACES = 6, LONGEST = 1e8;
export const formats = { title: "score", heading: "score", unit: "%", factor: 100, plain: false, lower_is_better: false, difference: "points", colours: ["#808080"], dashes: [[]] };

export const useFormats = (given) => Object.assign(formats, given);
export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
export const whole = (value) => (isNumber(value) ? Math.round(value).toLocaleString("en") : DASH);
export const colourOf = (place) => formats.colours[place % formats.colours.length];
export const dashOf = (place) => formats.dashes[Math.floor(place / formats.colours.length) % formats.dashes.length];

const minus = (text) => text.replace("-", MINUS);

function places(value) {
  if (!value) return DIGITS - 1;
  return Math.min(MOST_PLACES, Math.max(0, DIGITS - 1 - Number(value.toExponential(DIGITS - 1).split("e")[1])));
}

const fixed = (given, digits) => given.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
const power = (given) => given.toExponential(2).replace(/\.?0*e\+?/, "e").replace(/e(\d)$/, "e0$1");

export function value(given) {
  if (!isNumber(given)) return DASH;
  if (!formats.plain) return minus((formats.factor * given).toFixed(2));
  return minus(Math.abs(given) >= LONGEST ? power(given) : fixed(given, places(given)));
}

export function signed(given, like = given) {
  if (!isNumber(given)) return DASH;
  const most = formats.plain ? Math.min(places(given), places(like)) : 2, shown = formats.plain ? given : formats.factor * given;
  const text = Math.abs(shown) >= LONGEST ? power(shown) : fixed(shown, most);
  if (!/[1-9]/.test(text)) return text.replace("-", "");
  return minus(text.startsWith("-") ? text : `+${text}`);
}

export const interval = (low, high, show) => (isNumber(low) && isNumber(high) ? `${show(low)} to ${show(high)}` : "");

export function loss(given) {
  if (!isNumber(given)) return DASH;
  return minus(Math.abs(given) >= 1000 || (given !== 0 && Math.abs(given) < 0.001) ? given.toExponential(2) : given.toFixed(Math.abs(given) >= 100 ? 1 : 3));
}

export const tick = (given) => minus(Number(given.toPrecision(10)).toLocaleString("en", { maximumFractionDigits: 8 }));
export const signedTick = (given) => (Math.abs(given) < 1e-12 ? "0" : given > 0 ? `+${tick(given)}` : tick(given));

// A rough duration: no more digits than an estimate has.
export function duration(seconds) {
  if (!isNumber(seconds)) return DASH;
  if (seconds < 90) return `${Math.max(10, 10 * Math.round(seconds / 10))} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 36 * 3600) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} days`;
}

export function elapsed(seconds) {
  if (!isNumber(seconds)) return DASH;
  return seconds < 60 ? `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s` : duration(seconds);
}

export function speed(given) {
  if (!isNumber(given) || given <= 0) return "";
  return given >= 1 ? `${given.toFixed(given >= 10 ? 0 : 1)} steps/s` : `${(1 / given).toFixed(1)} s/step`;
}

export function bytes(given) {
  return isNumber(given) ? `${(given / 1e9).toFixed(given >= 1e11 ? 0 : 1)} GB` : DASH;
}

// Round numbers at equal distances between two numbers.
export function evenTicks(low, high, most = 5) {
  if (!(low < high)) return [low];
  const least = (high - low) / most, power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 2.5, 5, 10].map((digit) => digit * power).find((found) => found >= least * (1 - 1e-9)) ?? 10 * power;
  const found = [];
  for (let place = Math.ceil(low / step - 1e-9); place <= Math.floor(high / step + 1e-9); place += 1) found.push(place * step);
  return found;
}
