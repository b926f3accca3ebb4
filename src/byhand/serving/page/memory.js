// What a browser remembers of a person between visits: that the tour was taken, that the greeting
// was closed.  Where it may remember nothing, everything is as on a first visit.

export function recalled(name) {
  try { return localStorage.getItem(`byhand.${name}`); } catch { return null; }
}

export function remember(name, value) {
  try {
    if (value === null) localStorage.removeItem(`byhand.${name}`);
    else localStorage.setItem(`byhand.${name}`, value);
  } catch { /* forbidden: as on a first visit */ }
}
