// Questions and orders to the console's own server.

async function answerOf(response) {
  const type = response.headers.get("Content-Type") ?? "";
  const body = type.startsWith("application/json") ? await response.json() : {error: (await response.text()).trim()};
  if (!response.ok) throw new Error(body.error || `The console answers ${response.status}.`);
  return body;
}

async function ask(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Error("The console does not answer. Was it stopped?");
  }
}

export async function get(path, words) {
  const query = new URLSearchParams(Object.entries(words ?? {}).filter(([, value]) => value)).toString();
  return answerOf(await ask(`/api/${path}${query ? `?${query}` : ""}`));
}

export async function post(path, order) {
  return answerOf(await ask(`/api/${path}`, {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(order),
  }));
}
