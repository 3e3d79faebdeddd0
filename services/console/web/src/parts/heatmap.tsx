// A heat map: a table whose cells are darker for larger values. The values are written in the cells.

// Cell is one value, with its text.
export interface Cell {
  value: number;
  text: string;
}

const depths = 9;

// HeatMap shades cells by the logarithm of their value, because rounds differ by orders of magnitude.
export function HeatMap(props: { label: string; columns: string[]; rows: { group: string; name: string; cells: Cell[] }[] }) {
  const values = props.rows.flatMap((r) => r.cells.map((c) => c.value)).filter((v) => v > 0);
  const low = Math.log(Math.min(...values));
  const high = Math.log(Math.max(...values));
  const depth = (v: number) => (v <= 0 ? 0 : high === low ? depths : 1 + Math.round(((Math.log(v) - low) / (high - low)) * (depths - 1)));
  return (
    <div class="scroll heat" tabIndex={0} role="group" aria-label={props.label}>
      <table>
        <caption class="unseen">{props.label}</caption>
        <thead>
          <tr>
            <th scope="col">Protocol</th>
            <th scope="col">Round</th>
            {props.columns.map((c) => (
              <th key={c} scope="col" class="num">
                {c}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((r, i) => (
            <tr key={`${r.group}/${r.name}`} class={i > 0 && props.rows[i - 1]!.group !== r.group ? "first" : undefined}>
              <td class="group">{i === 0 || props.rows[i - 1]!.group !== r.group ? r.group : <span class="unseen">{r.group}</span>}</td>
              <th scope="row">{r.name}</th>
              {r.cells.map((c, j) => (
                <td key={j} class={`num depth${depth(c.value)}`}>
                  {c.text || "·"}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
