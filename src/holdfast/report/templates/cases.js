// The copy buttons of the cases, which need no other script.
document.querySelectorAll("[data-copy]").forEach((button) => {
  button.replaceWith(copyButton(button.dataset.copy));
});
