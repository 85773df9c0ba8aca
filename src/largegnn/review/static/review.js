"use strict";
(function () {
  const pair = document.getElementById("pair");
  const error = document.getElementById("error");
  const reviewer = document.getElementById("reviewer");
  const storage = window.localStorage;
  if (reviewer && !reviewer.value) reviewer.value = storage.getItem("reviewer") || "";
  if (reviewer) reviewer.addEventListener("change", () => storage.setItem("reviewer", reviewer.value));
  const isTyping = (element) => element && (element.matches("input:not([type=checkbox]), select, textarea"));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && isTyping(document.activeElement)) { document.activeElement.blur(); return; }
    if (isTyping(event.target)) return;
    if (event.key === "/") { event.preventDefault(); document.getElementById("query").focus(); return; }
    const step = { j: 1, k: -1 }[event.key];
    if (step) {
      const items = [...document.querySelectorAll("#worklist [data-row]")];
      const row = pair.querySelector("[data-shown]");
      const position = items.findIndex((item) => row && item.dataset.row === row.dataset.shown);
      const next = items[position + step];
      if (next) { event.preventDefault(); next.click(); }
      return;
    }
    const button = [...document.querySelectorAll("[data-key]")].find((candidate) => candidate.dataset.key === event.key);
    if (button && !button.disabled) { event.preventDefault(); button.click(); }
  });
  document.body.addEventListener("htmx:responseError", (event) => {
    error.textContent = event.detail.xhr.responseText.split("\n")[0] || "the server refused the request";
  });
  document.body.addEventListener("htmx:sendError", () => { error.textContent = "the server does not answer; nothing was saved"; });
  document.body.addEventListener("htmx:beforeRequest", () => { error.textContent = ""; });
  function markShown() {
    const row = pair.querySelector("[data-shown]");
    for (const item of document.querySelectorAll("#worklist [data-row]")) {
      if (row && item.dataset.row === row.dataset.shown) item.setAttribute("aria-current", "true");
      else item.removeAttribute("aria-current");
    }
  }
  markShown();
  document.body.addEventListener("htmx:afterSwap", (event) => {
    markShown();
    if (event.detail.target !== pair) return;
    const title = pair.querySelector("h2");
    if (title) title.focus({ preventScroll: false });
  });
})();
