// Addresses of pages: every page, filter and selection has one.
import { useEffect, useState } from "preact/hooks";

// Place is the path and the query of the current address.
export interface Place {
  path: string;
  query: URLSearchParams;
}

const changed = new Set<() => void>();

function here(): Place {
  return { path: location.pathname.replace(/\/+$/, "") || "/", query: new URLSearchParams(location.search) };
}

// go moves to an address of the console. A replaced address leaves no entry in the history.
export function go(address: string, replace = false) {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  for (const tell of changed) tell();
}

// usePlace returns the current address and follows it.
export function usePlace(): Place {
  const [place, set] = useState(here);
  useEffect(() => {
    const tell = () => set(here());
    changed.add(tell);
    window.addEventListener("popstate", tell);
    return () => {
      changed.delete(tell);
      window.removeEventListener("popstate", tell);
    };
  }, []);
  return place;
}

// withQuery returns the current address with changed parameters; empty values are removed.
export function withQuery(change: Record<string, string | undefined>): string {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(change)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

// follow handles clicks on links inside the console without loading the page again.
export function follow(event: MouseEvent) {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.("a[href]");
  if (!(link instanceof HTMLAnchorElement) || link.target || link.origin !== location.origin) return;
  if (link.hash && link.pathname === location.pathname) return;
  if (link.pathname.startsWith("/signin") || link.pathname.startsWith("/api")) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
