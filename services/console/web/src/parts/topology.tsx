// A picture of the cluster as seen from one process.
import { bytes, plural, span } from "../format";

// Peer is a process in the picture. Sent is the traffic to it in bytes per second.
export interface Peer {
  name: string;
  up: boolean;
  known: boolean;
  trip?: number;
  flow?: number;
}

const radius = 142;
const node = 30;

// Topology draws the process in the middle and the parties around it. Lines are the links that the process
// measures: a thicker line carries more bytes, and a broken line is down.
export function Topology(props: { self: string; role: string; peers: Peer[] }) {
  const { peers } = props;
  const most = Math.max(1, ...peers.map((p) => p.flow ?? 0));
  const places = peers.map((p, i) => {
    const angle = (2 * Math.PI * i) / peers.length - (peers.length > 2 ? Math.PI / 2 : Math.PI);
    return { ...p, x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
  });
  const edge = node + 3;
  const [low, high] = [Math.min(-40, ...places.map((p) => p.y - edge)), Math.max(40, ...places.map((p) => p.y + edge))];
  const side = Math.max(60, ...places.map((p) => Math.abs(p.x) + edge));
  const down = peers.filter((p) => p.known && !p.up).map((p) => p.name);
  const label = `${props.self} and ${plural(peers.length, "party", "parties")}; ${down.length ? `down: ${down.join(", ")}` : "all reachable"}`;
  return (
    <svg class="topology" width={2 * side} height={high - low} viewBox={`${-side} ${low} ${2 * side} ${high - low}`} role="img" aria-label={label}>
      {places.map((a, i) =>
        places.slice(i + 1).map((b) => <line key={a.name + b.name} class="between" x1={a.x} y1={a.y} x2={b.x} y2={b.y} />),
      )}
      {places.map((p) => {
        const width = p.up ? 1.5 + 4 * Math.sqrt((p.flow ?? 0) / most) : 1.5;
        return <line key={p.name} class={p.up ? "link up" : "link down"} x1={0} y1={0} x2={p.x} y2={p.y} stroke-width={width} />;
      })}
      {places.map((p) => {
        const text = !p.known ? "unknown" : !p.up ? "down" : p.trip !== undefined ? span(p.trip) : "";
        const flow = p.up && p.flow ? `${bytes(p.flow)}/s` : "";
        const x = p.x * 0.54;
        const y = p.y * 0.54;
        return (
          text && (
            <g key={p.name} class={p.up ? "tag" : "tag down"}>
              <rect x={x - 35} y={y - (flow ? 17 : 10)} width="70" height={flow ? 33 : 20} rx="3" />
              <text x={x} y={y + (flow ? -3 : 4)}>
                {text}
              </text>
              {flow && (
                <text x={x} y={y + 11}>
                  {flow}
                </text>
              )}
            </g>
          )
        );
      })}
      {places.map((p) => (
        <g key={p.name} class={`node ${!p.known ? "unknown" : p.up ? "up" : "down"}`}>
          <circle cx={p.x} cy={p.y} r={node} />
          <text x={p.x} y={p.y + 5}>
            {short(p.name)}
          </text>
        </g>
      ))}
      <g class="node self">
        <circle r="36" />
        <text y="5">
          {short(props.role === "coordinator" ? "coord." : props.self)}
        </text>
      </g>
    </svg>
  );
}

// short cuts long names so that they fit; the table beside the picture has them whole.
function short(name: string): string {
  return name.length > 7 ? `${name.slice(0, 6)}…` : name;
}
