// @ts-check
// Exchange the code in the address for a login, then load the page that the address names.

const state = /** @type {HTMLElement} */ (document.getElementById("state"));
const how = /** @type {HTMLElement} */ (document.getElementById("how"));
const form = /** @type {HTMLFormElement} */ (document.getElementById("form"));
const field = /** @type {HTMLInputElement} */ (document.getElementById("code"));
const CODE = /bhc_[A-Za-z0-9_-]{43}/;

/** Load the address again, now with the login. A script's navigation sends a strict cookie. */
function enter() {
  location.replace(location.pathname + location.search);
}

/** @param {string} text */
function explain(text) {
  state.textContent = text;
  how.hidden = false;
}

/** @param {string} code */
async function logIn(code) {
  state.textContent = "Logging in…";
  let answer;
  try {
    answer = await fetch("/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
    });
  } catch {
    explain("The server does not answer. Is it still running?");
    return;
  }
  if (answer.ok) {
    enter();
    return;
  }
  const problem = await answer.json().catch(() => ({}));
  explain(`You are not logged in: ${problem.detail ?? answer.statusText}.`);
}

async function begin() {
  const code = location.hash.match(CODE)?.[0];
  // The code leaves the address, and the history, before anything else happens.
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  if (code) {
    await logIn(code);
    return;
  }
  // A link on another site leads here without the cookie, even if there is a login.
  const answer = await fetch("/login").catch(() => null);
  if (answer?.ok) enter();
  else explain(answer ? "You are not logged in." : "The server does not answer. Is it still running?");
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const code = field.value.match(CODE)?.[0];
  if (code) logIn(code);
  else explain("That is no code: it begins with bhc_ and has 47 characters.");
});

// A page that is open already gets a new code when only the fragment of its address changes.
addEventListener("hashchange", begin);
begin();
