// Questions and orders to the console's own server.

// Of this tab and this port: another service on 127.0.0.1 must not get it, as it would get a cookie.
const TOKEN = "hapax-token";

// The printed URL has the token behind #. It shall not stay in the address.
export function takeToken() {
  const [, token] = /^#token=(\w+)$/.exec(location.hash) ?? [];
  if (!token) return;
  sessionStorage.setItem(TOKEN, token);
  history.replaceState(null, "", "/#/overview");
}

async function answerOf(response, silence = "The console's answer broke off.") {
  const type = response.headers.get("Content-Type") ?? "";
  const text = await response.text().catch(() => { throw new Error(silence); });
  const body = type.startsWith("application/json") ? JSON.parse(text) : {error: text.trim()};
  if (!response.ok) throw new Error(body.error || `The console answers ${response.status}.`);
  return body;
}

const IN_DOUBT = "The console gave no answer, so the order may have been carried out. Look again before you repeat it.";

async function ask(path, options, silence = "The console does not answer. Was it stopped?") {
  try {
    const headers = {...options?.headers, "X-Hapax-Token": sessionStorage.getItem(TOKEN) ?? ""};
    return await fetch(path, {...options, headers});
  } catch {
    throw new Error(silence);
  }
}

export async function get(path, words) {
  const query = new URLSearchParams(Object.entries(words ?? {}).filter(([, value]) => value)).toString();
  return answerOf(await ask(`/api/${path}${query ? `?${query}` : ""}`));
}

export async function post(path, order) {
  const options = {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(order)};
  const response = await ask(`/api/${path}`, options, order.dry_run ? undefined : IN_DOUBT);
  return answerOf(response, order.dry_run ? undefined : IN_DOUBT);
}

// Not by a link: a browser sends no token with it.
export async function download(path, name) {
  const response = await ask(`/api/${path}`);
  if (!response.ok) await answerOf(response);
  const href = URL.createObjectURL(await response.blob());
  const anchor = document.createElement("a");
  anchor.href = href;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
