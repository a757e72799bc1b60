/**
 * The script of the documentation page (docs-page.ts). It shows a form for each route of `/openapi.json`, and below it the response.
 *
 * The script is a string, because the content security policy of the page allows it by its hash. Data from the server is inserted as text and
 * never as markup.
 */
export const docsScript = `
const token = document.getElementById('token')
const routes = document.getElementById('routes')
const examples = {
  'post /tasks': { task_name: 'Add', task_intention: 'See how it works', commands: [{ tool_name: 'add', intention: 'Add two numbers', args: { a: 2, b: 3 } }] },
}
let fields = 0

const make = (tag, more, ...children) => {
  const element = Object.assign(document.createElement(tag), more)
  element.append(...children)
  return element
}

/** Text between backticks is code. */
const prose = (tag, text) => make(tag, {}, ...text.split('\\x60').map((part, at) => at % 2 === 0 ? part : make('code', {}, part)))

const labelled = (name, hint, control) => {
  control.id = 'field-' + (fields += 1)
  const label = make('label', { htmlFor: control.id }, name)
  if (hint) {
    const note = prose('small', hint)
    note.id = control.id + '-hint'
    control.setAttribute('aria-describedby', note.id)
    return make('p', {}, label, ' ', note, control)
  }
  return make('p', {}, label, control)
}

let schemas = {}
/** Follows a reference to a named schema. */
const resolved = (schema = {}) => schema.$ref === undefined ? schema : schemas[schema.$ref.split('/').at(-1)] ?? {}

const controlOf = ({ name, required, schema: given }) => {
  const schema = resolved(given)
  if (!schema.enum) return make('input', { name, required: required === true, spellcheck: false })
  return make('select', { name }, make('option', { value: '' }, 'any'), ...schema.enum.map((value) => make('option', {}, value)))
}

const indented = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** Puts the id of a new task into the forms of the other routes. */
const rememberTask = (text) => {
  const { taskId } = JSON.parse(text)
  for (const input of document.querySelectorAll('input[name=id]')) input.value = taskId
}

async function show(response, output) {
  output.textContent = response.status + ' ' + response.statusText + '\\n'
  if ((response.headers.get('content-type') ?? '').includes('json')) {
    const text = await response.text()
    output.append(indented(text))
    if (response.status === 401) output.append('\\n\\nThis server requires a token: enter it at the top of the page.')
    return text
  }
  if (response.body === null) return ''
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let part = await reader.read(); !part.done; part = await reader.read()) output.append(part.value)
  return ''
}

async function send(request, path, output, signal) {
  output.textContent = 'Waiting for the response …'
  output.setAttribute('aria-busy', 'true')
  try {
    if (token.value) request.headers.authorization = 'Bearer ' + token.value
    const response = await fetch(path, { ...request, signal, cache: 'no-store' })
    const text = await show(response, output)
    if (request.method === 'POST' && path === '/tasks' && response.status === 201) rememberTask(text)
  } catch (error) {
    if (!signal.aborted) output.textContent = 'No response: ' + error.message
  } finally {
    if (!signal.aborted) output.setAttribute('aria-busy', 'false')
  }
}

function formOf(method, path, operation) {
  const form = make('form')
  if (operation.description) form.append(prose('p', operation.description))
  const controls = (operation.parameters ?? []).map((parameter) => [parameter, controlOf(parameter)])
  for (const [parameter, control] of controls) form.append(labelled(parameter.name, parameter.description ?? resolved(parameter.schema).description, control))
  let body
  if (operation.requestBody) {
    const text = JSON.stringify(examples[method + ' ' + path] ?? {}, null, 2)
    body = make('textarea', { name: 'body', value: text, rows: Math.max(4, text.split('\\n').length), spellcheck: false })
    form.append(labelled('body', 'JSON', body))
  }
  const output = make('pre')
  output.setAttribute('role', 'status')
  output.setAttribute('aria-label', 'Answer')
  let running
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    running?.abort()
    running = new AbortController()
    let target = path
    const query = new URLSearchParams()
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    for (const [parameter, { value }] of controls) {
      if (parameter.in === 'path') target = target.replace('{' + parameter.name + '}', encodeURIComponent(value))
      else if (value && parameter.in === 'query') query.set(parameter.name, value)
      else if (value && parameter.in === 'header') headers[parameter.name] = value
    }
    void send({ method: method.toUpperCase(), headers, body: body?.value }, target + (query.size ? '?' + query : ''), output, running.signal)
  })
  const answers = Object.entries(operation.responses).map(([status, { description }]) => make('tr', {}, make('td', {}, status), prose('td', description)))
  form.append(
    make('button', {}, 'Send'),
    output,
    make('details', { className: 'answers' }, make('summary', {}, 'Responses'), make('table', {}, ...answers)),
  )
  return form
}

function showRoute(method, path, operation) {
  const title = make('summary', {}, make('b', {}, method.toUpperCase()), ' ', make('code', {}, path), ' ', make('span', {}, operation.summary))
  return make('details', { className: 'route' }, title, formOf(method, path, operation))
}

async function showRoutes() {
  const response = await fetch('/openapi.json')
  if (!response.ok) throw new Error('the server answered ' + response.status + ' ' + (await response.text()))
  const { info, paths, components } = await response.json()
  schemas = components?.schemas ?? {}
  document.getElementById('version').textContent = info.version
  document.getElementById('about').textContent = info.description
  const groups = new Map()
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const tag = operation.tags?.[0] ?? 'other'
      if (!groups.has(tag)) {
        groups.set(tag, make('section', {}, make('h2', {}, tag[0].toUpperCase() + tag.slice(1))))
        routes.append(groups.get(tag))
      }
      groups.get(tag).append(showRoute(method, path, operation))
    }
  }
}

// Enter in the token field must not submit the form.
document.getElementById('access').addEventListener('submit', (event) => event.preventDefault())
showRoutes().catch((error) => { routes.textContent = '/openapi.json could not be read: ' + error.message })
`
