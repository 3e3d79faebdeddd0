// The page of a reader who is not signed in.
import { useState } from "preact/hooks";
import { post, problem, type Problem, type Process } from "./api";
import { Command, Trouble } from "./parts/page";
import mark from "./mark.svg";

// Why a sign-in at another address of the process came back here, as ?signin=REASON.
const reasons: Record<string, Problem> = {
  link_used: { code: "link_used", what: "this link was used before, or is older than a minute", next: "run lodge console open again" },
  refused: { code: "refused", what: "this process does not know the identity", next: "add the client to its configuration" },
  unavailable: { code: "unavailable", what: "the issuer cannot be reached", next: "try again in a moment, or sign in another way" },
  busy: { code: "busy", what: "too many browsers are signing in", next: "try again in a moment" },
  failed: { code: "failed", what: "the sign-in did not succeed", next: "try again, or sign in another way" },
};

// SignIn offers the ways to sign in that this process has.
export function SignIn(props: { ways: string[]; process?: Process }) {
  const has = (way: string) => props.ways.includes(way);
  const [refused, setRefused] = useState(reasons[new URLSearchParams(location.search).get("signin") ?? ""]);
  const own = props.process;
  const withCertificate = async () => {
    try {
      await post("/signin/certificate");
      location.reload();
    } catch (error) {
      setRefused(problem(error));
    }
  };
  return (
    <main class="signin" id="main">
      <img src={mark} alt="" width="44" height="44" />
      <h1>
        Sign in to {own ? (own.role === "party" ? `party ${own.name}` : `the ${own.name}`) : "Lodge"}
      </h1>
      <p class="lead">You see here what the same identity could ask for in the terminal, and nothing more. The console changes nothing.</p>
      {refused && <Trouble problem={refused} />}
      <div class="ways">
        {has("oidc") && (
          <section>
            <h2>With your organisation</h2>
            <a class="button" href="/signin/oidc">
              Continue to the issuer
            </a>
          </section>
        )}
        {has("certificate") && (
          <section>
            <h2>With a client certificate</h2>
            <p>The browser offers the certificates that you have imported into it.</p>
            <button type="button" class="button" onClick={withCertificate}>
              Use my certificate
            </button>
          </section>
        )}
        {has("link") && (
          <section>
            <h2>From the terminal</h2>
            <p>The command prints a link that signs in one browser, once, within a minute.</p>
            <Command text={own?.role === "party" ? `lodge console open --party ${own.name}` : "lodge console open"} />
          </section>
        )}
      </div>
    </main>
  );
}
