import { render } from "preact";
import "./style/base.css";
import "./style/parts.css";
import "./style/pages.css";
import { App } from "./app";
import { applyTheme } from "./theme";

applyTheme();
render(<App />, document.getElementById("console")!);
