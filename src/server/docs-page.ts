/**
 * `GET /docs`: a page that lists the routes of `/openapi.json`, sends requests to them, and follows a task. The page loads no other file: its
 * content security policy forbids it.
 */
import { createHash } from 'node:crypto'
import { docsScript } from './docs-script.js'

const style = `
:root { color-scheme: light dark; --line: #8888; --accent: #1f5fc4; --fill: #1f5fc4 }
@media (prefers-color-scheme: dark) { :root { --accent: #8ab4f8 } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: 0 }
h1 small { font-weight: normal; font-size: 1rem; opacity: .75 }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .3rem }
a { color: var(--accent) }
code, pre, textarea, input, select { font: 13px/1.45 ui-monospace, monospace }
.route { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem }
summary { cursor: pointer }
summary b { display: inline-block; min-width: 3.2rem; color: var(--accent) }
summary span { padding-left: .5rem }
form { margin-top: .6rem }
form p { margin: .6rem 0 }
label { font-weight: 600 }
small { opacity: .8 }
input, select, textarea { display: block; width: 100%; box-sizing: border-box; padding: .35rem; border: 1px solid var(--line); border-radius: 4px; background: Field; color: FieldText }
textarea { resize: vertical }
button { padding: .35rem .9rem; border-radius: 4px; border: 1px solid var(--fill); background: var(--fill); color: #fff; cursor: pointer; font: inherit }
:is(button, summary, input, select, textarea, a):focus-visible { outline: 3px solid #f5a623; outline-offset: 1px }
pre { overflow: auto; max-height: 24rem; padding: .6rem; border: 1px solid var(--line); border-radius: 4px; white-space: pre-wrap; overflow-wrap: anywhere }
pre:empty { padding: 0; border: 0 }
.answers { margin: .6rem 0 .3rem }
table { border-collapse: collapse; margin-top: .3rem }
td { padding: .1rem .8rem .1rem 0; vertical-align: top }
`

const sourceOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Allows the style and the script of the page by their hashes, and requests to the same server. */
export const docsPolicy = [
  "default-src 'none'",
  `script-src ${sourceOf(docsScript)}`,
  `style-src ${sourceOf(style)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>agent-tasks</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
<h1>agent-tasks <small id="version"></small></h1>
<p id="about"></p>
<p>The OpenAPI document is <a href="/openapi.json">/openapi.json</a>. WebSockets: <code>/ws</code> for clients; for workers see <code>POST /register</code>.</p>
<form id="access"><label for="token">Token</label> <small>if the server requires one; it is not stored</small><input id="token" type="password" autocomplete="off" spellcheck="false"></form>
<div id="routes"></div>
</main>
<script>${docsScript}</script>
</body>
</html>
`
