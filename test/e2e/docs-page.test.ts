/** The documentation page in a real browser: it tries the routes of its server, breaks no policy of its own, and asks nobody else. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createDemoInstance } from '../../src/cli/demo-instance.js'
import { startTaskServer, type TaskServer } from '../../src/server/index.js'
import { command, evaluated, openDriver, refOf, type Command, type Perform } from '../support/browser.js'

const TOKEN = '~a+token/with=signs'

interface Stage {
  readonly server: TaskServer
  readonly perform: Perform
}

/** A server that serves the page and can add, and another that has the browser. */
async function openStage(tokens: readonly string[]): Promise<Stage> {
  const server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0 },
    logLevel: 'silent',
    env: {},
    auth: { tokens: [...tokens] },
    instances: [createDemoInstance()],
  })
  onTestFinished(() => server.close({ drainMs: 0 }))
  return { server, perform: await openDriver('reader') }
}

const routeOf = (method: string, path: string): string =>
  `details.route:has(> summary b:text-is("${method}")):has(> summary code:text-is("${path}"))`
const open = (route: string): Command => command('browser_click', { target: `${route} >> summary >> nth=0` })
const send = (route: string): Command => command('browser_click', { target: `${route} >> role=button[name="Send"]` })
const waitFor = (text: string): Command => command('browser_wait_for', { text })
const textIn = (route: string): Command =>
  command('browser_evaluate', { target: `${route} >> pre`, function: '(pre) => pre.textContent' })
/** The answer below a form, when all of it is there. */
const answerOf = (route: string): Command =>
  command('browser_evaluate', {
    target: `${route} >> pre`,
    function: `async (pre) => {
      while (pre.textContent === '' || pre.ariaBusy === 'true') await new Promise((resolve) => requestAnimationFrame(resolve))
      return pre.textContent
    }`,
  })
const answered = (result: string | undefined): unknown => {
  const [, body = ''] = /^\d+ [^\n]*\n([^]*)$/.exec(evaluated(result ?? '') as string) ?? []
  return JSON.parse(body)
}

const submitRoute = routeOf('POST', '/tasks')
const taskRoute = routeOf('GET', '/tasks/{id}')
const eventsRoute = routeOf('GET', '/tasks/{id}/events')
const consoleErrors = command('browser_console_messages', { level: 'warning', all: true })
const network = command('browser_network_requests', { static: true })

describe('the documentation page in a browser', { timeout: 180_000 }, () => {
  it.each([
    ['without a token', []],
    ['with a token', [TOKEN]],
  ])('submits a task, shows its result and its events, and asks nobody but its server, %s', async (_, tokens) => {
    const { server, perform } = await openStage(tokens)
    const [, , snapshot = ''] = await perform(
      command('browser_navigate', { url: `${server.httpUrl}/docs` }),
      waitFor('Get metrics'),
      command('browser_snapshot'),
    )
    expect(snapshot).toMatch(/heading "agent-tasks [\d.]+"/)
    await perform(command('browser_click', { target: refOf(snapshot, 'generic "POST /tasks Submit a task"') }))

    if (tokens.length > 0) {
      await perform(send(submitRoute), waitFor('enter it at the top of the page'))
      const token = { target: refOf(snapshot, 'textbox "Token"'), text: TOKEN, submit: true }
      await perform(command('browser_type', { element: 'Token', ...token }))
    }
    const submitted = await perform(send(submitRoute), answerOf(submitRoute))
    const { taskId } = answered(submitted[1]) as { taskId: string }
    expect(server.taskManager.getTask(taskId)).toMatchObject({ name: 'Add', instanceId: 'calc' })

    const shown = await perform(
      open(eventsRoute),
      send(eventsRoute),
      waitFor('event: task_complete'),
      open(taskRoute),
      send(taskRoute),
      answerOf(taskRoute),
    )
    expect(answered(shown[5])).toMatchObject({
      task: {
        id: taskId,
        status: 'completed',
        commands: [{ status: 'success', result: { content: [{ text: '5' }] } }],
      },
    })

    const [messages = '', requests = ''] = await perform(consoleErrors, network)
    const errors = messages.split('\n').filter((line) => /^\[(ERROR|WARNING)\]/.test(line))
    expect(errors).toEqual(tokens.map(() => expect.stringContaining('status of 401') as string))
    const urls = [...requests.matchAll(/^\d+\. \[\w+\] (\S+)/gm)].map(([, url = '']) => url)
    expect(urls).toEqual(
      [
        '/docs',
        '/openapi.json',
        ...tokens.map(() => '/tasks'),
        '/tasks',
        `/tasks/${taskId}/events`,
        `/tasks/${taskId}`,
      ].map((path) => server.httpUrl + path),
    )
  })

  it('shows what is wrong with a request, asks for an id before it asks the server, and lists tasks of a status', async () => {
    const { server, perform } = await openStage([])
    const listRoute = routeOf('GET', '/tasks')
    const texts = await perform(
      command('browser_navigate', { url: `${server.httpUrl}/docs` }),
      open(submitRoute),
      command('browser_type', { target: `${submitRoute} >> textarea`, text: '{ "task_name": 7, "commands": [] }' }),
      send(submitRoute),
      answerOf(submitRoute),
      open(taskRoute),
      send(taskRoute),
      textIn(taskRoute),
      open(listRoute),
      command('browser_select_option', { target: `${listRoute} >> select`, values: ['failed'] }),
      send(listRoute),
      answerOf(listRoute),
      network,
    )
    expect(answered(texts[4])).toMatchObject({ code: 'INVALID_TASK', details: { field: 'body.task_name' } })
    expect(evaluated(texts[7]!)).toBe('')
    expect(answered(texts[11])).toMatchObject({ tasks: [] })
    expect(texts[12]).toContain('/tasks?status=failed')
  })
})
