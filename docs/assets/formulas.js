// Typeset what the arithmatex extension marked as a formula. KaTeX 0.19.1 lies in katex/, with its licence.
document.querySelectorAll(".arithmatex").forEach((element) => {
  const block = element.textContent.startsWith("\\[");
  const formula = element.textContent.slice(2, -2);
  katex.render(formula, element, { displayMode: block, throwOnError: false });
});
