/**
 * `GET /docs`: one page that lists the routes of `/openapi.json`, tries them, and follows a task. It loads nothing from anywhere else, and
 * its policy lets it load nothing.
 *
 * It is longer than most files because a page that needs no network holds its style and its script.
 */
import { createHash } from 'node:crypto'

const style = `
:root { color-scheme: light dark; --line: #8884; --accent: #2a6fdb }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: 0 }
code, pre, textarea, input { font: 13px/1.45 ui-monospace, monospace }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem }
summary { cursor: pointer }
summary b { display: inline-block; min-width: 3.5rem; color: var(--accent) }
label { display: block; margin: .4rem 0 }
input, textarea { width: 100%; box-sizing: border-box; padding: .35rem; border: 1px solid var(--line); border-radius: 4px; background: transparent; color: inherit }
textarea { min-height: 9rem }
button { padding: .35rem .9rem; border-radius: 4px; border: 1px solid var(--accent); background: var(--accent); color: #fff; cursor: pointer }
button:focus-visible, summary:focus-visible, input:focus-visible, textarea:focus-visible { outline: 3px solid #f5a623; outline-offset: 1px }
pre { overflow: auto; max-height: 24rem; padding: .6rem; border: 1px solid var(--line); border-radius: 4px; white-space: pre-wrap }
table { border-collapse: collapse } td { padding: .1rem .8rem .1rem 0; vertical-align: top }
`

const script = `
const token = document.getElementById('token')
const list = document.getElementById('routes')
const make = (tag, text, more) => Object.assign(document.createElement(tag), { textContent: text ?? '' }, more)
const example = {
  '/tasks': { task_name: 'Add', task_intention: 'See how it works', commands: [{ tool_name: 'add', intention: 'Add two numbers', args: { a: 2, b: 3 } }] },
  '/register': {},
}
async function call(method, path, headers, body, output) {
  output.textContent = ''
  if (token.value) headers.authorization = 'Bearer ' + token.value
  if (body !== undefined) headers['content-type'] = 'application/json'
  try {
    const response = await fetch(path, { method, headers, body })
    output.textContent = response.status + ' ' + response.statusText + '\\n'
    const decoder = new TextDecoder()
    if (response.body) {
      const reader = response.body.getReader()
      for (let part = await reader.read(); !part.done; part = await reader.read()) output.textContent += decoder.decode(part.value, { stream: true })
    }
  } catch (error) {
    output.textContent = String(error)
  }
}
function field(form, name, hint) {
  const input = make('input', '', { name, placeholder: hint ?? '' })
  const label = make('label', name)
  label.append(input)
  form.append(label)
  return input
}
function show(path, method, operation) {
  const box = make('details')
  const title = make('summary')
  title.append(make('b', method.toUpperCase()), make('code', path), ' ', make('span', operation.summary))
  const form = make('form')
  if (operation.description) form.append(make('p', operation.description))
  const answers = make('table')
  for (const [status, { description }] of Object.entries(operation.responses)) {
    const row = make('tr')
    row.append(make('td', status), make('td', description))
    answers.append(row)
  }
  form.append(answers)
  const fields = (operation.parameters ?? []).map((parameter) => [parameter, field(form, parameter.name, parameter.description)])
  let body
  if (operation.requestBody) {
    body = make('textarea', JSON.stringify(example[path] ?? {}, null, 2), { name: 'body' })
    const label = make('label', 'body')
    label.append(body)
    form.append(label)
  }
  const output = make('pre', '')
  output.setAttribute('aria-live', 'polite')
  form.append(make('button', 'Send'), output)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    let target = path
    const query = new URLSearchParams()
    const headers = {}
    for (const [parameter, input] of fields) {
      if (parameter.in === 'path') target = target.replace('{' + parameter.name + '}', encodeURIComponent(input.value))
      if (parameter.in === 'query' && input.value) query.set(parameter.name, input.value)
      if (parameter.in === 'header' && input.value) headers[parameter.name] = input.value
    }
    call(method.toUpperCase(), target + (query.size ? '?' + query : ''), headers, body?.value, output)
  })
  box.append(title, form)
  list.append(box)
}
fetch('/openapi.json').then((response) => response.json()).then((api) => {
  document.getElementById('version').textContent = api.info.version
  document.getElementById('about').textContent = api.info.description
  for (const [path, operations] of Object.entries(api.paths)) for (const [method, operation] of Object.entries(operations)) show(path, method, operation)
}).catch((error) => { list.textContent = String(error) })
`

const sourceOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Nothing but the page's own style and script, and requests to the server it came from. */
export const docsPolicy = [
  "default-src 'none'",
  `script-src ${sourceOf(script)}`,
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
<h1>agent-tasks <small id="version"></small></h1>
<p id="about"></p>
<p>The contract is <a href="/openapi.json">/openapi.json</a>. Sockets: <code>/ws</code> for clients; workers are told theirs by <code>POST /register</code>.</p>
<label>Token, where one is needed<input id="token" type="password" autocomplete="off"></label>
<div id="routes"></div>
<script>${script}</script>
</body>
</html>
`
