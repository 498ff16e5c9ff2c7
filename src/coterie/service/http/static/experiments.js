"use strict";
// Experiments of the service: what each policy has brought, and what that suggests.

function describeArm(arm) {
  return [
    arm.mode === "online" ? arm.policy : `${arm.policy} (${arm.mode})`,
    number(arm.users),
    number(arm.decisions),
    arm.reward === null ? "" : arm.reward.toFixed(4),
    signed(arm.difference, 4),
    arm.low === null ? "" : `${signed(arm.low, 4)} to ${signed(arm.high, 4)}`,
    arm.uplift === null ? "" : `${signed(100 * arm.uplift, 1)} %`,
  ];
}

function describeExperiment(one) {
  const made = document.createElement("div"), proposal = document.createElement("p"), users = document.createElement("p");
  const columns = ["policy", "users", "decisions", "reward", "difference", `${+(100 * (1 - one.alpha)).toFixed(2)} %, at all times`, "uplift"];
  const tables = document.createElement("div"), names = one.policies.slice(1).map((arm) => `uplift of ${arm.policy}`);
  const days = one.days.slice(-7).map((day) => [
    day.day,
    number(day.decisions.reduce((sum, count) => sum + count, 0)),
    ...day.uplift.slice(1).map((value) => (value === null ? "" : `${signed(100 * value, 1)} %`)),
  ]);
  tables.className = "tables";
  tables.append(table(one.name, columns, one.policies.map(describeArm)));
  if (days.length) tables.append(table("Last days (UTC)", ["day", "decisions", ...names], days));
  proposal.textContent = `Proposal: ${one.proposal}.`;
  users.className = "note";
  users.textContent = `Numbers of users are ${one.ratio_ok ? "" : "not "}as intended (p = ${one.ratio_p.toPrecision(2)}).`;
  made.append(tables, proposal, users);
  return made;
}

async function showExperiments() {
  try {
    const response = await fetch("/v1/experiments", { headers: headers() });
    if (!response.ok) return; // a key of one policy may not see them
    const found = (await response.json()).experiments;
    if (found.length) find("experiments").replaceChildren(...found.reverse().map(describeExperiment));
  } catch { /* the page says elsewhere that the service does not answer */ }
}

showExperiments();
setInterval(showExperiments, 5000);
