// What an opened row of the job table shows: the job's stays, and its waits with their reasons.

const packKey = (index) => `${DATA.runs[index].setting}-${DATA.runs[index].policy}`;
const firstOf = (index) => DATA.runs.findIndex((run) =>
  run.setting === DATA.runs[index].setting && run.policy === DATA.runs[index].policy);
const detailed = (index) => firstOf(index) === index && Boolean(DATA.packs[packKey(index)]);

async function jobDetails(job) {
  if (!detailed(job.index)) {
    return [html("p", { class: "note" }, "The stays and waits of this run are not in this page. "),
      html("p", { class: "note" }, html("code", {},
        `artist why ${DATA.runs[job.index].name} ${job.id}`), " prints them.")];
  }
  const run = await inflate(DATA.packs[packKey(job.index)]);
  const packed = DATA.waits[job.index];
  const waits = packed ? await inflated(`waits ${job.index}`, packed) : null;
  return [...stayTable(run, job), ...waitTable(waits, run, job)];
}

function stayTable(run, job) {
  const rows = run.job.map((_, i) => i).filter((i) => run.job[i] === job.handle)
    .map((i) => run.factsOf(i)).sort((a, b) => a.start - b.start || a.length - b.length);
  const body = rows.map((f) => [String(f.row), inUnit(f.start, "time"), inUnit(f.length, "jct"), String(f.gpus),
    f.level, f.shape, f.placement, number(f.speed * 1000), f.ended]);
  return [html("h4", {}, `Stays (${rows.length})`),
    dataTable(["placements.parquet row", `From (${unitOf("time")})`, `For (${unitOf("jct")})`, "GPUs", "Tier", "Shape",
      "Machine:GPUs", "Iteration (ms)", "Ended"], body, "words")];
}

function waitTable(waits, run, job) {
  if (!waits) {
    return [html("p", { class: "note" }, job.wait ? "This run did not record why jobs waited."
      : "The job never waited.")];
  }
  const name = (i) => (i < run.jobs.length ? run.jobs[i] : waits.strangers[i - run.jobs.length]);
  const rows = waits.job.map((_, i) => i).filter((i) => waits.job[i] === job.handle);
  if (!rows.length) return [html("p", { class: "note" }, "The job never waited.")];
  const body = rows.map((i) => {
    const listed = (group) => group.map(name).join(", ") || "-";
    const more = waits.overtakers[i] - waits.groups[waits.overtaken[i]].length;
    return [String(i), inUnit(waits.start[i], "time"), inUnit(waits.wait[i], "waiting"), waits.causes[waits.cause[i]],
      waits.reasons[waits.reason[i]], number(waits.free[i]), listed(waits.groups[waits.holders[i]]),
      listed(waits.groups[waits.overtaken[i]]) + (more > 0 ? ` and ${number(more)} more` : "")];
  });
  return [html("h4", {}, `Waits (${rows.length})`),
    dataTable(["waits.parquet row", `From (${unitOf("time")})`, `For (${unitOf("waiting")})`, "Cause", "Reason",
      "Most GPUs free",
      "Jobs that held most GPUs", "Overtaken by"], body, "words")];
}
