// The page of a report.
import { html } from "../../ui/html.js";
import { setServer } from "./recorded.js";
import { prepare, Report, show } from "./report.js";

show((data) => {
  const recording = prepare(data);
  setServer(recording.server);
  return html`<${Report} recording=${recording} />`;
});
