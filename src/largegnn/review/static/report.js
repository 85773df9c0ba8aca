"use strict";
(function () {
  const slider = document.getElementById("threshold");
  const data = document.getElementById("cuts");
  if (!slider || !data) return;
  const cuts = JSON.parse(data.textContent);
  const own = Number(slider.dataset.own);
  const reset = document.getElementById("threshold-reset");
  const marker = document.querySelector("#rating-chart .marker");
  const start = Number(slider.dataset.start), end = Number(slider.dataset.end);
  const whole = new Intl.NumberFormat("en");
  const share = (value) => (value === null ? "–" : value.toFixed(3));
  const put = (id, text) => { document.getElementById(id).textContent = text; };
  function show(place) {
    const cut = cuts[place];
    put("cut-threshold", cut.threshold.toFixed(3));
    put("cut-pairs", whole.format(cut.pairs));
    put("cut-precision", share(cut.expected_precision));
    put("cut-recall", share(cut.expected_recall));
    if (document.getElementById("cut-judged")) {
      put("cut-judged", cut.judged
        ? "precision " + share(cut.right / cut.judged) + " (90% interval " + share(cut.precision_low) + " to "
          + share(cut.precision_high) + "), " + whole.format(cut.right) + " of "
          + whole.format(cut.judged) + " right; recall " + share(cut.recall)
        : "–");
    }
    put("cut-state", place === own ? "This is the threshold of this run." : "");
    reset.hidden = place === own;
    slider.setAttribute("aria-valuetext", "threshold " + cut.threshold.toFixed(3) + ", " + cut.pairs + " pairs");
    if (marker) {
      const x = start + Math.min(Math.max(cut.threshold, 0), 1) * (end - start);
      marker.setAttribute("x1", x);
      marker.setAttribute("x2", x);
    }
  }
  slider.addEventListener("input", () => show(Number(slider.value)));
  reset.addEventListener("click", () => { slider.value = own; show(own); slider.focus(); });
  slider.disabled = false;
  show(Number(slider.value));
})();
