/** The options page: the server's address and token, and the state of the connection. */
import '../no-code-from-text.js'
import { readState, type ConnectionState } from '../connection-state.js'
import { checkSettings, readSettings, type Field, type FieldProblems, type Settings } from '../settings.js'
import { SETTINGS_KEY, STATE_KEY, WAKE_KEY } from '../storage-keys.js'

const FIELDS: readonly Field[] = ['url', 'token', 'name']
const { local, session } = chrome.storage

function element(id: string): HTMLElement {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`The page has no #${id}.`)
  return found
}

const input = (field: Field): HTMLInputElement => element(field) as HTMLInputElement

async function settings(): Promise<Settings> {
  return readSettings((await local.get(SETTINGS_KEY))[SETTINGS_KEY])
}

function say(id: string, text: string | undefined): void {
  const line = element(id)
  line.hidden = text === undefined
  line.textContent = text ?? ''
}

function showProblems(problems: FieldProblems): void {
  for (const field of FIELDS) {
    say(`${field}-problem`, problems[field])
    input(field).ariaInvalid = field in problems ? 'true' : 'false'
  }
  const first = FIELDS.find((field) => field in problems)
  if (first !== undefined) input(first).focus()
}

async function showState({ phase, problem }: ConnectionState): Promise<void> {
  const { url, name } = await settings()
  const box = element('state')
  box.dataset['phase'] = phase
  box.dataset['problem'] = String(problem !== undefined)
  say('phase', titleOf(phase, problem !== undefined, { url, name }))
  say('what', problem?.what)
  say('advice', problem?.advice)
  element('stop').hidden = phase === 'stopped'
  element('again').hidden = phase === 'connected'
}

function titleOf(phase: ConnectionState['phase'], isFailing: boolean, { url, name }: Pick<Settings, 'url' | 'name'>) {
  if (phase === 'connected') return `Connected to ${url} as ${name}`
  if (phase === 'stopped') return 'Disconnected'
  return isFailing ? 'Not connected' : `Connecting to ${url} …`
}

async function save(changed: Settings): Promise<void> {
  // The random id changes the stored value, so that saving unchanged settings connects again.
  await local.set({ [SETTINGS_KEY]: { ...changed, savedAs: crypto.randomUUID() } })
}

element('form').addEventListener('submit', (event) => {
  event.preventDefault()
  const checked = checkSettings({ url: input('url').value, token: input('token').value, name: input('name').value })
  showProblems('problems' in checked ? checked.problems : {})
  if (!('problems' in checked)) void save(checked)
})
element('stop').addEventListener('click', () => void settings().then((now) => save({ ...now, isOn: false })))
element('again').addEventListener('click', () => void settings().then((now) => save({ ...now, isOn: true })))

chrome.storage.onChanged.addListener((changes, area) => {
  const { [STATE_KEY]: state } = changes
  if (area === 'session' && state !== undefined) void showState(readState(state.newValue))
})

const now = await settings()
for (const field of FIELDS) input(field).value = now[field]
const { [STATE_KEY]: known } = await session.get(STATE_KEY)
if (known !== undefined) await showState(readState(known))
// A person who opens the page expects an attempt at once, not at the next alarm.
await session.set({ [WAKE_KEY]: crypto.randomUUID() })
