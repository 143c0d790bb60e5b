// The login of this page: its space, what it may do, and whether it is still valid.
import { call, connection } from "./api.js";
import { cell } from "./lib.js";

/**
 * @typedef {{name: string, space: string, access: "read"|"write", session_id: string|null,
 *   expires_at: string, version: string, writable: boolean}} Login
 */

/** The login, or null until the server has described it. */
export const login = cell(/** @type {Login | null} */ (null));

/** Tell whether actions that change something are offered. */
export const canWrite = () => {
  const now = login.get();
  return now !== null && now.access === "write" && now.writable !== false;
};

/** Ask the server who this is; `connection` tells when that fails. */
export async function loadLogin() {
  try {
    login.set(await call("GET", "/login"));
    return true;
  } catch {
    return false;
  }
}

/** End the login and show the page for a new one. */
export async function logout() {
  try {
    await call("DELETE", "/login");
  } finally {
    location.assign("/");
  }
}

/** While the server is gone or the login expired, look every two seconds for a change. */
export function watchConnection() {
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  const look = () => {
    if (document.visibilityState === "visible") void loadLogin();
  };
  connection.follow((state) => {
    clearInterval(timer);
    if (state !== "ok") timer = setInterval(look, 2000);
  });
}
