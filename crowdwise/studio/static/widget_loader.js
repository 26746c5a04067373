// A notebook gives a widget one module: the others come as text, and each becomes an address that others import.

function resolve(from, name) {
  const parts = from.split("/").slice(0, -1);
  for (const part of name.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** Import a module by its path among texts of modules, and what it imports. */
export function load(modules, entry) {
  const urls = new Map();
  const urlOf = (path) => {
    if (!urls.has(path)) {
      const text = modules[path].replace(/(\bfrom\s*|\bimport\s+)"(\.[^"]+)"/g, (_, before, name) => `${before}"${urlOf(resolve(path, name))}"`);
      urls.set(path, URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
    }
    return urls.get(path);
  };
  return import(urlOf(entry));
}

/** A function that asks the kernel as fetch would ask a server. */
export function asker(model) {
  const waiting = new Map();
  let last = 0;
  model.on("msg:custom", ({ id, status, headers }, buffers) => {
    waiting.get(id)?.(new Response(buffers[0], { status, headers }));
    waiting.delete(id);
  });
  return (method, address, body, signal) =>
    new Promise((done, stop) => {
      const id = ++last;
      waiting.set(id, done);
      signal?.addEventListener("abort", () => stop(new DOMException("No longer needed", "AbortError")));
      model.send({ id, method, address, body: body === undefined ? null : JSON.stringify(body) });
    });
}

export default {
  async render({ model, el }) {
    const { mount } = await load(model.get("modules"), "widget.js");
    return mount(el, asker(model));
  },
};
