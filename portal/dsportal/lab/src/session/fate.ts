// What became of the session, as the hub tells: portal/dsportal/hub/pages/session_status.py.

/** Where the hub is, and whose session this is; as in JupyterLab's page. */
export interface IHub {
  host: string;
  prefix: string;
  user: string;
  server: string;
}

/** `stranger`: the hub does not tell whoever asks; `silent`: it cannot be reached. */
export type State = 'running' | 'stopping' | 'ended' | 'unknown' | 'stranger' | 'silent';

export interface IFate {
  state: State;
  /** Seconds since 1970, where they are known. */
  ended: number | null;
  /** Completes "It ended because ..."; empty where nobody knows. */
  why: string;
  /** With which it starts again without the form: portal/dsportal/hub/pages/start_again.py; or empty. */
  token: string;
}

const STATES: readonly string[] = ['running', 'stopping', 'ended', 'unknown'];
const REQUEST_MILLISECONDS = 8_000;
const NOTHING = { ended: null, why: '', token: '' };

/** Ask the hub. It is asked by the login of the browser: the session's own is gone with it. */
export async function askHub(hub: IHub, jobId: string): Promise<IFate> {
  const url = `${hub.host}${hub.prefix}portal/session/${jobId}`;
  try {
    const answer = await fetch(url, {
      credentials: 'include',
      cache: 'no-store',
      signal: AbortSignal.timeout(REQUEST_MILLISECONDS)
    });
    return fateFrom(answer.status, answer.ok ? await answer.json() : null);
  } catch {
    return { state: 'silent', ...NOTHING };
  }
}

/** Read the hub's answer. */
export function fateFrom(status: number, body: unknown): IFate {
  if (status === 401 || status === 403) {
    return { state: 'stranger', ...NOTHING };
  }
  const { state, ended, why, token } = (body ?? {}) as Partial<IFate>;
  if (status !== 200 || state === undefined || !STATES.includes(state)) {
    return { state: 'silent', ...NOTHING };
  }
  return {
    state,
    ended: typeof ended === 'number' ? ended : null,
    why: typeof why === 'string' ? why : '',
    token: typeof token === 'string' ? token : ''
  };
}

/**
 * Where a session starts with the choices of the one that has ended, to come back to a document: at
 * once with the hub's token, and else in the form.
 */
export function againUrl(
  hub: IHub,
  over: { jobId: string; token: string },
  baseUrl: string,
  path: string
): string {
  const document = ['tree', ...path.split('/')].map(encodeURIComponent).join('/');
  const next = `${new URL(baseUrl, 'http://page').pathname}lab${path ? `/${document}` : ''}`;
  if (over.token) {
    const query = new URLSearchParams({ token: over.token, server: hub.server, next });
    return `${hub.host}${hub.prefix}portal/start-again/${over.jobId}?${query}`;
  }
  const whose = [hub.user, hub.server].filter(Boolean).map(encodeURIComponent).join('/');
  return `${hub.host}${hub.prefix}spawn/${whose}?next=${encodeURIComponent(next)}`;
}
