// Tables that become lists of records on narrow screens.
import type { ComponentChildren } from "preact";

// Column says how a row of data becomes a cell.
export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  // num aligns numbers on the right.
  num?: boolean;
  // wide lets the text of the column wrap.
  wide?: boolean;
}

// Table shows rows. On narrow screens each row is a record whose cells have the heads as labels.
export function Table<T>(props: {
  caption: string;
  columns: Column<T>[];
  rows: T[];
  id: (row: T) => string;
  tone?: (row: T) => string | undefined;
}) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={props.caption}>
      <table>
        <caption class="unseen">{props.caption}</caption>
        <thead>
          <tr>
            {props.columns.map((c) => (
              <th key={c.head} scope="col" class={c.num ? "num" : undefined}>
                {c.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.id(row)} class={props.tone?.(row)}>
              {props.columns.map((c, i) => {
                const content = c.cell(row);
                const none = content === "–" || content === "";
                const kind = [c.num && "num", c.wide && "wide", none && "none"].filter(Boolean).join(" ") || undefined;
                return i === 0 ? (
                  <th key={c.head} scope="row" data-head={c.head}>
                    <span>{content}</span>
                  </th>
                ) : (
                  <td key={c.head} data-head={c.head} class={kind}>
                    <span>{content}</span>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
