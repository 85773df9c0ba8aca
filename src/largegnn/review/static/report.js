"use strict";
(function () {
  const slider = document.getElementById("threshold");
  const data = document.getElementById("cuts");
  if (!slider || !data) return;
  const cuts = JSON.parse(data.textContent);
  const runCut = Number(slider.dataset.run);
  const reset = document.getElementById("threshold-reset");
  const marker = document.querySelector("#confidence-chart .marker");
  const start = Number(slider.dataset.start), end = Number(slider.dataset.end);
  const integer = new Intl.NumberFormat("en");
  const share = (value) => (value === null ? "–" : value.toFixed(3));
  const setText = (id, text) => { document.getElementById(id).textContent = text; };
  function show(position) {
    const cut = cuts[position];
    setText("cut-threshold", cut.threshold.toFixed(3));
    setText("cut-pairs", integer.format(cut.pairs));
    setText("cut-precision", share(cut.expected_precision));
    setText("cut-recall", share(cut.expected_recall));
    if (document.getElementById("cut-judged")) {
      setText("cut-judged", cut.judged
        ? "precision " + share(cut.right / cut.judged) + " (90% interval " + share(cut.precision_low) + " to "
          + share(cut.precision_high) + "), " + integer.format(cut.right) + " of "
          + integer.format(cut.judged) + " right; recall " + share(cut.recall)
        : "–");
    }
    setText("cut-state", position === runCut ? "This is the threshold of this run." : "");
    reset.hidden = position === runCut;
    slider.setAttribute("aria-valuetext", "threshold " + cut.threshold.toFixed(3) + ", " + cut.pairs + " pairs");
    if (marker) {
      const x = start + Math.min(Math.max(cut.threshold, 0), 1) * (end - start);
      marker.setAttribute("x1", x);
      marker.setAttribute("x2", x);
    }
  }
  slider.addEventListener("input", () => show(Number(slider.value)));
  reset.addEventListener("click", () => { slider.value = runCut; show(runCut); slider.focus(); });
  slider.disabled = false;
  show(Number(slider.value));
})();
