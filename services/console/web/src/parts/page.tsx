// The frame of every page: a sentence that says how things are, and the same in the terminal.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api";
import { Mark, type Tone } from "./state";

// Page shows the title, the sentence and the terminal line. The tone is that of the sentence.
export function Page(props: {
  title: string;
  verdict: ComponentChildren;
  tone?: Tone;
  aside?: ComponentChildren;
  terminal: string[];
  live?: { problem?: Problem; failing?: number };
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${props.title} · Lodge`;
  }, [props.title]);
  return (
    <>
      <header class="page-head">
        <h1 tabIndex={-1} id="title">{props.title}</h1>
        <p class={`verdict ${props.tone ?? ""}`}>
          {props.tone && props.tone !== "quiet" && <Mark tone={props.tone} />}
          <span>{props.verdict}</span>
        </p>
        {props.aside && <p class="aside">{props.aside}</p>}
      </header>
      {props.live?.problem && <Trouble problem={props.live.problem} old={props.live.failing !== undefined} />}
      {props.children}
      <Terminal lines={props.terminal} />
    </>
  );
}

// Section is a part of a page with a heading, and controls beside the heading.
export function Section(props: { title: string; note?: ComponentChildren; tools?: ComponentChildren; class?: string; children: ComponentChildren }) {
  const id = "s-" + props.title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return (
    <section class={props.class} aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{props.title}</h2>
        {props.note && <p class="note">{props.note}</p>}
        {props.tools && <div class="tools">{props.tools}</div>}
      </div>
      {props.children}
    </section>
  );
}

// Trouble shows an error and what to do.
export function Trouble(props: { problem: Problem; old?: boolean }) {
  const { code, what, next } = props.problem;
  return (
    <div class="trouble" role="status">
      <Mark tone="warn" />
      <div>
        <p>
          <b>{what}</b> <code>{code}</code>
        </p>
        {next && <p>Next: {next}.</p>}
        {props.old && <p class="soft">The page shows the last known state and retries by itself.</p>}
      </div>
    </div>
  );
}

// Empty says why there is nothing and what to do.
export function Empty(props: { children: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <p>{props.children}</p>
      {props.command && <Command text={props.command} />}
    </div>
  );
}

// Terminal is the line with the equivalent commands.
export function Terminal(props: { lines: string[] }) {
  return (
    <aside class="terminal" aria-labelledby="terminal">
      <h2 id="terminal">How do I do this in the terminal?</h2>
      <ul>
        {props.lines.map((line) => (
          <li key={line}>
            <Command text={line} />
          </li>
        ))}
      </ul>
    </aside>
  );
}

// Command is a command that can be copied.
export function Command(props: { text: string }) {
  const [copied, set] = useState(false);
  const timer = useRef(0);
  const copy = async () => {
    await navigator.clipboard.writeText(props.text);
    set(true);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => set(false), 1500);
  };
  return (
    <span class="command">
      <code>{props.text}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${props.text}`}>
        {copied ? "Copied" : "Copy"}
      </button>
    </span>
  );
}

// Choice is a row of links of which one is current: filters and spans with addresses.
export function Choice(props: { label: string; options: { text: string; href: string; on: boolean }[] }) {
  return (
    <nav class="choice" aria-label={props.label}>
      {props.options.map((o) => (
        <a key={o.text} href={o.href} aria-current={o.on ? "true" : undefined}>
          {o.text}
        </a>
      ))}
    </nav>
  );
}

// Facts is a list of names and values.
export function Facts(props: { items: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {props.items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
