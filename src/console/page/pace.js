// How fast the group settles and how fast messages arrive, while this page is open: from checkpoints
// and Kafka's ends as each look finds them. They count offsets; a topic may leave some of them out.
import {duration, h, svg} from "./dom.js";

const KEPT_MS = 15 * 60_000;
const WINDOW_MS = 30_000; // checkpoints move in steps, so a rate is over several of them
const LEAST_MS = 5_000;
const WIDTH = 600, HEIGHT = 110;

let samples = []; // {at, asked, partitions: Map of place → {checkpoint, end, life}}

const placeOf = (row) => `${row.topic}/${row.partition}`;

export function observe(state, at = Date.now()) {
  if (!state) return;
  const partitions = new Map(state.partitions.map((row) => [placeOf(row), {checkpoint: row.checkpoint, end: row.end, lag: row.lag, life: row.generation}]));
  samples = [...samples.filter((sample) => at - sample.at < KEPT_MS), {at, asked: at - 1000 * (state.kafka_age_seconds ?? 0), partitions}];
}

// Per second from `before` to `after`; null: nothing to compare. What jumped back is no settling.
function rates(before, after, which) {
  const sum = {settled: null, arriving: null};
  for (const [where, now] of after.partitions) {
    const then = before.partitions.get(where);
    if ((which && where !== which) || !then || then.life !== now.life) continue;
    for (const [name, field, seconds] of [["settled", "checkpoint", after.at - before.at], ["arriving", "end", after.asked - before.asked]]) {
      if (then[field] === null || now[field] === null || now[field] < then[field] || seconds <= 0) continue;
      sum[name] = (sum[name] ?? 0) + 1000 * (now[field] - then[field]) / seconds;
    }
  }
  return sum;
}

// [{at, settled, arriving, lag}] of one partition, or of all.
export function paceOf(which) {
  const pace = [];
  let oldest = 0;
  for (const sample of samples) {
    while (sample.at - samples[oldest].at > WINDOW_MS) ++oldest;
    if (sample.at - samples[oldest].at < LEAST_MS) continue;
    const lags = [...sample.partitions].filter(([where]) => !which || where === which).map(([, row]) => row.lag);
    pace.push({at: sample.at, ...rates(samples[oldest], sample, which), lag: lags.every((lag) => lag !== null) ? lags.reduce((a, b) => a + b, 0) : null});
  }
  return pace;
}

const rounded = (rate) => (rate < 10 ? Math.round(10 * rate) / 10 : Math.round(rate)).toLocaleString("en");

// "… the lag is gone in about 4 min", from the newest rates.
export function sentence(pace) {
  const now = pace.at(-1);
  if (!now || now.settled === null) return "The pace is known once the page has been open for 5 seconds.";
  const told = `${rounded(now.settled)} offsets/s settled${now.arriving === null ? "" : `, ${rounded(now.arriving)}/s arrive`}`;
  const gain = now.settled - now.arriving;
  if (!now.lag || now.arriving === null) return `${told}.`;
  if (gain > 0) return `${told}. At this pace the lag of ${now.lag.toLocaleString("en")} is gone in about ${duration(Math.ceil(now.lag / gain))}.`;
  return `${told}. At this pace the lag of ${now.lag.toLocaleString("en")} ${gain < 0 ? "grows" : "stays"}.`;
}

// The points of one line; it breaks where nothing is known.
function line(pace, name, most, className) {
  const from = pace[0].at, span = Math.max(1, pace.at(-1).at - from);
  const at = (one) => `${(WIDTH * (one.at - from) / span).toFixed(1)},${(HEIGHT * (1 - one[name] / most)).toFixed(1)}`;
  const runs = [[]];
  for (const one of pace) {
    if (one[name] === null) runs.push([]);
    else runs.at(-1).push(at(one));
  }
  return runs.filter((run) => run.length > 1).map((run) => svg("polyline", {class: className, points: run.join(" ")}));
}

// The sentence, and the same as a picture once there is one.
export function plot(pace) {
  const text = h("p", null, sentence(pace));
  if (pace.length < 3) return text;
  const most = Math.max(1, ...pace.flatMap((one) => [one.settled ?? 0, one.arriving ?? 0]));
  const minutes = duration(Math.round((pace.at(-1).at - pace[0].at) / 1000));
  return h("figure", null, text,
    svg("svg", {viewBox: `0 -4 ${WIDTH} ${HEIGHT + 8}`, preserveAspectRatio: "none", role: "img", "aria-label": `Pace of the last ${minutes}`},
      ...line(pace, "arriving", most, "arriving"), ...line(pace, "settled", most, "settled")),
    h("figcaption", {class: "quiet"}, `The last ${minutes}, up to ${rounded(most)} offsets/s: `, h("span", {class: "settled"}, "settled (line)"), ", ", h("span", {class: "arriving"}, "arriving (dashes)")));
}
