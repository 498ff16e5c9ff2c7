"use strict";
// What decisions have brought since the policy began: by hour, by item, and what has collapsed.

const day = (at) => (at === null ? "" : new Date(at * 1000).toISOString().slice(5, 16).replace("T", " "));
const per = (choice) => (choice.counted > 0 ? choice.reward_sum / choice.counted : null);

function describeItem(item) {
  const effect = item.effect === null ? "none" : signed(item.effect, 3);
  return [item.id, number(item.shown), item.reward === null ? "no reward" : item.reward.toFixed(3), effect, day(item.first_shown)];
}

function paragraph(text, name = "empty") {
  const made = document.createElement("p");
  made.className = name;
  made.textContent = text;
  return made;
}

function showItems(found) {
  const columns = ["item", "shown", "reward", "effect", "first shown (UTC)"];
  if (!found.most_shown_items.length)
    return find("items").replaceChildren(paragraph("No item of the catalogue was shown yet. Items appear when decisions choose them; arms that requests bring without ids have no row."));
  find("items").replaceChildren(
    table("Highest reward", columns, found.best_items.map(describeItem)),
    table("Newest", columns, found.newest_items.map(describeItem)),
    table("Shown most", columns, found.most_shown_items.map(describeItem)),
  );
}

function showChanged(users) {
  if (users === null) find("changed").replaceChildren(paragraph("This policy does not look for users who change."));
  else if (!users.length) find("changed").replaceChildren(paragraph("Nobody so far. A user is listed when its rewards no longer fit those that it gave before."));
  else find("changed").replaceChildren(table("Latest first", ["user", "found to have changed"], users.map((one) => [one.user, `${number(one.rewards_ago)} rewards ago`])));
}

function showAlerts(alerts) {
  find("alerts").hidden = !alerts.length;
  find("alerts").replaceChildren(...alerts.map((one) => {
    const line = document.createElement("li");
    line.textContent = `Alert: ${one.text}.`;
    return line;
  }));
}

// Hours without decisions have no row: their bars and lines stay empty.
function showHistory(hours) {
  const shown = hours.map((one) => ({ ...one, at: one.at + 1800, count: one.policy.decisions + one.uniform.decisions }));
  const drawn = shown.some((one) => one.uniform.decisions);
  showEmpty("history", !shown.some((one) => one.count));
  find("history-drawn").hidden = !drawn;
  if (!shown.length) return;
  const lines = [{ colour: "--mark", values: shown.map((one) => per(one.policy)) }];
  if (drawn) lines.push({ colour: "--other", values: shown.map((one) => per(one.uniform)) });
  const total = shown.reduce((sum, one) => sum + one.count, 0);
  find("history-note").textContent = `(${number(total)} in ${number(shown.length)} ${shown.length === 1 ? "hour" : "hours"})`;
  find("history").ariaLabel = `Reward per decision by hour: ${shown.length} hours, ${number(per(shown.at(-1).policy), 3)} in the latest`;
  drawLines(find("history"), shown, lines, { label: (value) => value.toFixed(2), gap: 3 * 3600, least: 7200, bars: shown.map((one) => one.count) });
}

let asked = 0;
async function showOutcomes() {
  if (!policy) return;
  const mine = (asked += 1);
  try {
    const response = await fetch(`/v1/policies/${encodeURIComponent(policy)}/outcomes`, { headers: headers() });
    if (!response.ok || mine !== asked) return; // another policy was chosen meanwhile
    const found = await response.json();
    showAlerts(found.alerts);
    showHistory(found.hours);
    showItems(found);
    showChanged(found.changed_users);
  } catch { /* the page says elsewhere that the service does not answer */ }
}

setInterval(showOutcomes, 10_000);
find("policy").addEventListener("change", showOutcomes);
