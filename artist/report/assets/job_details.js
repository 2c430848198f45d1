// What an opened row of the job table shows: the job's stays, and its waits with their reasons.

const packKey = (index) => `${DATA.runs[index].setting}-${DATA.runs[index].policy}`;
const firstOf = (index) => DATA.runs.findIndex((run) =>
  run.setting === DATA.runs[index].setting && run.policy === DATA.runs[index].policy);
const detailed = (index) => firstOf(index) === index && Boolean(DATA.packs[packKey(index)]);

const why = (job) => html("code", {}, `artist why ${DATA.runs[job.index].name} ${job.id}`);

async function jobDetails(job) {
  if (!detailed(job.index)) {
    return [html("p", { class: "note" }, "The stays and waits of this run are not in this page. "
      + "This prints them:"), html("p", {}, why(job))];
  }
  const run = await inflate(DATA.packs[packKey(job.index)]);
  const packed = DATA.waits[job.index];
  const waits = packed ? await inflated(`waits ${job.index}`, packed) : null;
  return [...stayTable(run, job), ...waitTable(waits, run, job)];
}

function stayTable(run, job) {
  const rows = run.job.map((_, i) => i).filter((i) => run.job[i] === job.handle)
    .map((i) => run.factsOf(i)).sort((a, b) => a.start - b.start || a.length - b.length);
  const body = rows.map((f) => [inUnit(f.start, "time"), inUnit(f.length, "jct"), f.gpus,
    f.level, f.shape, f.placement, number(f.speed * 1000), f.ended, String(f.row)]);
  return [html("h4", {}, `Stays (${rows.length})`),
    dataTable([`From (${unitOf("time")})`, `For (${unitOf("jct")})`, "GPUs", "Tier", "Shape",
      "Machine:GPUs", "Iteration (ms)", "Ended", "Row"], body, "words")];
}

function waitTable(waits, run, job) {
  const say = (text) => [html("p", { class: "note" }, text)];
  if (!job.wait) return say("The job never waited.");
  if (!DATA.runs[job.index].waits) return say("This run did not record why jobs waited.");
  if (!waits || (waits.kept && !waits.kept.includes(job.handle))) {
    return [...say("To keep the page below 3 MB, it holds the waits of the worst jobs only. This "
      + "prints those of this job:"), html("p", {}, why(job))];
  }
  const name = (job) => (typeof job === "number" ? run.jobs[job] : job);
  const rows = waits.job.map((_, i) => i).filter((i) => waits.job[i] === job.handle);
  const body = rows.map((i) => [inUnit(waits.start[i], "time"), inUnit(waits.wait[i], "waiting"),
    waits.causes[waits.cause[i]], waits.reasons[waits.reason[i]], number(waits.free[i]),
    waits.groups[waits.holders[i]].map(name).join(", ") || "-"]);
  return [html("h4", {}, `Waits (${rows.length})`),
    dataTable([`From (${unitOf("time")})`, `For (${unitOf("waiting")})`, "Cause", "Reason",
      "Most GPUs free", "Jobs that held most GPU time"], body, "words")];
}
