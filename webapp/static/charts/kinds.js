// What each chart shows: given all names, the series in it; how they are called, coloured and printed.
import { count, figure, size } from "../series.js";
import { colour, dash } from "./looks.js";

const only = (...wanted) => (names) => wanted.filter((n) => names.has(n));
const like = (pattern) => (names) => [...names].filter((n) => pattern.test(n)).sort(inOrder);
const inOrder = (a, b) => a.localeCompare(b, "en", { numeric: true }); // node2 before node10
export const spoken = (name) => name.replace("eval/", "evaluation: ").replaceAll("_", " ");

const PARTS = ["step", "data", "forward_backward", "optimizer", "save", "evaluation", "other"].map((n) => `${n}_seconds`);
export const PLANNED = "planned/";
const HOST = /^node(\d+)\/(?:gpu(\d+)\/)?(\w+)$/; // node, GPU, figure

const share = (y) => `${figure(100 * y)}%`;
const rate = (bytes) => `${size(bytes)}/s`;
const steps = (fields) => ({ axis: "step", format: figure, label: spoken, ...fields });

/** The name by which people know a node; its rank where no page says it. */
let nodes = {};
export const nameNodes = (named) => { nodes = named; };

/** A chart of hosts over time. `words` by figure: what it is, where one chart has several, or where a GPU's number does not say it. */
const hosts = (pattern, words, fields) => ({
  axis: "time", zero: true, pick: like(pattern),
  label: (name) => {
    const [, node, gpu, part] = HOST.exec(name);
    return [nodes[node] || `node ${node}`, gpu && `GPU ${gpu}`, words[part]].filter(Boolean).join(" ");
  },
  /** One colour a node, dashes by its GPU, or by its figure. */
  looks: (name) => {
    const [, node, gpu, part] = HOST.exec(name);
    return { stroke: colour(Number(node)), dash: dash(Number(gpu ?? Math.max(0, Object.keys(words).indexOf(part)))) };
  },
  ...fields,
});

const RAM = /^node\d+\/ram_used$/;
const GPU_MEMORY = /^node\d+\/gpu\d+\/used$/;
const gpus = (names) => like(GPU_MEMORY)(names);
const whole = (name) => name.replace(/(ram_|disk_)?used$/, "$1total");

/** `limit`: the name of the series whose last value is a curve's limit. `optional` charts are hidden while empty. */
export const KINDS = {
  loss: steps({ pick: only("loss", "eval/loss"), label: (n) => n }),
  learning_rate: steps({ pick: only("planned/learning_rate", "learning_rate"), label: (n) => (n.startsWith(PLANNED) ? "planned" : "learning rate") }),
  grad_norm: steps({ pick: only("grad_norm"), label: () => "gradient norm" }),
  speed: steps({ pick: only("tokens_per_second", "trained_tokens_per_second"), label: (n) => (n.startsWith("trained") ? "trained tokens/s" : "tokens/s"), format: count, zero: true }),
  parts: steps({ pick: only(...PARTS), label: (n) => spoken(n.replace("_seconds", "")), format: (y) => `${figure(y)} s`, zero: true }),
  accuracy: steps({ pick: only("mean_token_accuracy", "eval/mean_token_accuracy"), label: (n) => (n.startsWith("eval/") ? "evaluation" : "training"), format: share }),
  entropy: steps({ pick: only("entropy", "eval/entropy"), label: (n) => (n.startsWith("eval/") ? "evaluation" : "training") }),
  mfu: steps({ pick: only("mfu"), label: () => "MFU", format: share, zero: true }),
  rank_memory: steps({ pick: like(/^(host_)?memory(_\w+)?$/), format: size, zero: true }),
  memory: hosts(GPU_MEMORY, { ram_used: "host RAM" }, { format: size, limit: whole, pick: (names) => (gpus(names).length ? gpus(names) : like(RAM)(names)) }),
  gpu_load: hosts(/^node\d+\/gpu\d+\/load$/, {}, { format: share }),
  gpu_temperature: hosts(/^node\d+\/gpu\d+\/temperature$/, {}, { format: (y) => `${figure(y)} °C`, zero: false }),
  gpu_power: hosts(/^node\d+\/gpu\d+\/power$/, {}, { format: (y) => `${figure(y)} W` }),
  ram: hosts(RAM, { ram_used: "" }, { format: size, limit: whole, pick: (names) => (gpus(names).length ? like(RAM)(names) : []) }),
  cpu: hosts(/^node\d+\/cpu$/, { cpu: "" }, { format: share }),
  disk: hosts(/^node\d+\/disk_used$/, { disk_used: "" }, { format: size, limit: whole }),
  disk_rate: hosts(/^node\d+\/disk_(read|write)$/, { disk_read: "read", disk_write: "written" }, { format: rate }),
  network: hosts(/^node\d+\/(net|rdma)_(received|sent)$/, { net_received: "received", net_sent: "sent", rdma_received: "RDMA received", rdma_sent: "RDMA sent" }, { format: rate }),
};

const DULL = /^(epoch|at|num_tokens|node\d+\/.*)$/; // they say no more than steps; what is not of steps has its own chart

/** The kind of a metric that no chart above knows. */
export const plain = (name) => steps({ pick: only(name) });

export function unknown(names) {
  const known = new Set(Object.values(KINDS).flatMap((kind) => kind.pick(names)));
  return [...names].filter((n) => !known.has(n) && !DULL.test(n)).sort();
}

/** The look of a curve; `nth` of its chart where its kind has none of its own. */
export const looks = (kind, name, nth) => kind.looks?.(name) ?? { stroke: colour(nth), dash: dash(nth) };
