// The signs on buttons, drawn, since fonts differ in which they have.

import { draw } from "./drawing.js";

const PATHS = {
  undo: "M7 5 3.5 8.5 7 12M3.5 8.5H12a4.5 4.5 0 0 1 0 9H8",
  redo: "M13 5l3.5 3.5L13 12M16.5 8.5H8a4.5 4.5 0 0 0 0 9h4",
  reset: "M4 4.5v4h4M4.3 8.5a6.2 6.2 0 1 1-.5 4",
  first: "M15 5.5 8.5 10 15 14.5zM5.5 5.5v9",
  previous: "M13.5 5.5 7 10l6.5 4.5z",
  play: "M7 4.5 15.5 10 7 15.5z",
  pause: "M7 5v10M13 5v10",
  following: "M6.5 5.5 13 10l-6.5 4.5z",
  last: "M5 5.5 11.5 10 5 14.5zM14.5 5.5v9",
  open: "M10 13.5V4M6 7.5 10 3.5l4 4M3.5 13v3.5h13V13",
  help: "M7.2 7.4a2.9 2.9 0 1 1 4.4 2.5c-1 .6-1.6 1.2-1.6 2.4M10 15.6v.2",
  try: "M7.5 13.2a5 5 0 1 1 5 0v1.8h-5zM8.3 17.5h3.4",
  history: "M4 4.5v4h4M4.3 8.5a6.2 6.2 0 1 1-.5 4M10 6.8V10l2.4 1.6",
  tour: "M10 3a7 7 0 1 0 0 14 7 7 0 1 0 0-14zM12.8 7.2 11.2 11.2 7.2 12.8 8.8 8.8z",
  close: "M5.5 5.5l9 9M14.5 5.5l-9 9",
  system: "M10 3a7 7 0 1 0 0 14 7 7 0 1 0 0-14zM10 3v14M7.4 4v12M5 6v8",
  light: "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.4 4.4l1 1M14.6 14.6l1 1M15.6 4.4l-1 1M5.4 14.6l-1 1",
  dark: "M16.5 11.8A6.8 6.8 0 1 1 8.2 3.5a5.4 5.4 0 0 0 8.3 8.3z",
};
const FILLED = new Set(["first", "previous", "play", "following", "last"]);

/** The sign of this name. */
export const icon = (name) => draw("svg", { class: `icon${FILLED.has(name) ? " full" : ""}`, viewBox: "0 0 20 20", "aria-hidden": "true", focusable: "false" }, draw("path", { d: PATHS[name] }));
