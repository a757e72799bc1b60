/** `GET /`: a small page that describes the server and links to its pages. `GET /info` returns the same as JSON. */
import { createHash } from 'node:crypto'
import { omitUndefined } from '../data/omit-undefined.js'
import type { ServerInfo } from '../protocol/rest.js'
import type { ServerConfig } from '../protocol/server-config.js'
import { packageVersion } from '../system/version.js'

export interface ServerDescription {
  readonly config: ServerConfig
  /** The URL of the REST API. */
  readonly baseUrl: () => string
  /** The URL of the client WebSocket. */
  readonly wsUrl: () => string
  /** The URL of the page that shows the tasks, if there is one. */
  readonly pageUrl: () => string | undefined
}

export function describeServer({ config, baseUrl, wsUrl, pageUrl }: ServerDescription): ServerInfo {
  const base = baseUrl()
  const url = wsUrl()
  const { protocol, hostname, port } = new URL(url)
  const isSecure = protocol === 'wss:'
  const page = pageUrl()
  const required = config.auth.tokens.length > 0
  return {
    name: 'agent-tasks',
    version: packageVersion,
    endpoints: {
      tasks: `${base}/tasks`,
      instances: `${base}/instances`,
      register: `${base}/register`,
      health: `${base}/health`,
      metrics: `${base}/metrics`,
      openapi: `${base}/openapi.json`,
      docs: `${base}/docs`,
      ...omitUndefined({ page }),
      rest_api: { list_tools: `${base}/api/tools`, execute_tool: `${base}/api/tools/{toolName}` },
    },
    websocket: {
      protocol: isSecure ? 'wss' : 'ws',
      host: hostname,
      port: port === '' ? (isSecure ? 443 : 80) : Number(port),
      url,
    },
    auth: { required, method: required ? 'Bearer token' : 'none' },
  }
}

const style = `
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem }
h1 small { font-weight: normal; font-size: 1rem; opacity: .75 }
`

/** The HTML of `GET /`. Its links are relative where possible, so that they also work behind a proxy. */
export function startPage({ version, endpoints: { page } }: ServerInfo): string {
  const links = [
    ...(page === undefined ? [] : [link(page, 'The page', 'shows the tasks live.')]),
    link('/docs', 'The routes', 'to try them.'),
    link('/openapi.json', 'OpenAPI', 'the contract, for programs.'),
    link('/health', 'Health', ''),
    link('/info', 'Addresses', 'as JSON.'),
  ]
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>agent-tasks</title>
<style>${style}</style>
<main>
<h1>agent-tasks <small>${escaped(version)}</small></h1>
<p>A task server. Clients submit commands to it, and follow what they do.</p>
<ul>
${links.join('\n')}
</ul>
</main>
</html>
`
}

/** The content security policy of the page. It allows only the style above. */
export const startPolicy = [
  `default-src 'none'`,
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  `base-uri 'none'`,
  `form-action 'none'`,
  `frame-ancestors 'none'`,
].join('; ')

const link = (href: string, name: string, about: string): string =>
  `<li><a href="${escaped(href)}">${name}</a>${about === '' ? '' : `: ${about}`}</li>`

const escaped = (text: string): string => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
