// Starts the page.
function followAddress() {
  readAddress();
  applyFilters();
  const cell = state.cell ? cellOfKey(state.cell) : -1;
  if (cell >= 0) openCell(cell);
  else closePanel();
}

startFilters();
followAddress();
addEventListener("hashchange", followAddress);
// The address holds the state of the page, so a jump inside it must not go there.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  focusCell(place.row, place.column);
});
document.querySelector(".keys").hidden = false;
document.documentElement.dataset.ready = String(Math.round(performance.now()));
