/** The tools that act on elements. */
import { z } from 'zod'
import type { InstanceTool } from '../../../protocol/instance-tools.js'
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { callOn, scrollIntoView, type Element } from './element-handles.js'
import { findElement, reachElement } from './elements.js'
import { mainFrameOf, worldOf } from './frames.js'
import { guardKeyboard } from './input-guard.js'
import { pressKey, typeKeys } from './keyboard.js'
import { keyOf, modifierOf, parseKeys, pastes, type Modifier } from './keys.js'
import { clickAt, movePointer } from './mouse.js'
import { PUT_CARET_LAST, SELECT_OPTIONS, SELECT_TEXT, TEXT_FIELD } from './page-scripts.js'
import { ELEMENT, pageTool, type PageCall, type Toolkit } from './toolkit.js'
import { until } from './waiting.js'

const TEXT_CHARS = 100_000

export function elementTools(toolkit: Toolkit): readonly InstanceTool[] {
  return [
    pageTool(toolkit, {
      name: 'browser_click',
      description: 'Clicks an element of the page',
      inputSchema: z.strictObject({
        ...ELEMENT,
        doubleClick: z.boolean().optional().describe('Whether to click twice'),
        button: z.enum(['left', 'right', 'middle']).optional().describe('The button of the mouse. Default: left'),
        modifiers: z
          .array(z.enum(['Alt', 'Control', 'ControlOrMeta', 'Meta', 'Shift']))
          .max(5)
          .optional()
          .describe('The keys to hold during the click'),
      }),
      run: ({ target, doubleClick = false, button = 'left', modifiers = [] }, call) =>
        call.perform(async () => {
          const { page, signal, isMac, times } = call
          const { point, what } = await reachElement(page, target, { ...times, mustBeEnabled: true }, signal)
          const held = modifiers
            .map((name) => modifierOf(name, isMac))
            .filter((name): name is Modifier => name !== undefined)
          await clickAt(page, point, { button, count: doubleClick ? 2 : 1, modifiers: held }, signal)
          return `Clicked ${what}.`
        }),
    }),
    pageTool(toolkit, {
      name: 'browser_hover',
      description: 'Moves the mouse over an element of the page',
      inputSchema: z.strictObject(ELEMENT),
      run: ({ target }, call) =>
        call.perform(async () => {
          const { point, what } = await reachElement(call.page, target, call.times, call.signal)
          await movePointer(call.page, point, call.signal)
          return `The mouse is over ${what}.`
        }),
    }),
    pageTool(toolkit, {
      name: 'browser_type',
      description: 'Types text into a field. The text replaces what the field contains, unless slowly is true',
      inputSchema: z.strictObject({
        ...ELEMENT,
        text: z.string().max(TEXT_CHARS).describe('The text to type'),
        submit: z.boolean().optional().describe('Whether to press Enter after the text'),
        slowly: z
          .boolean()
          .optional()
          .describe(
            'Whether to press a key for each character, at the end of what the field contains. For pages that react to keys',
          ),
      }),
      run: ({ target, text, submit = false, slowly = false }, call) =>
        call.perform(async () => {
          const { page, signal } = call
          const { element, what } = await focusField(call, target, slowly)
          if (slowly) {
            await callOn(page, element, PUT_CARET_LAST, [], signal)
            await typeKeys(page, text, signal)
          } else await replaceText(call, element, text)
          if (submit) await pressKey(page, { modifiers: [], key: keyOf('\n') }, signal)
          return `Typed ${Array.from(text).length} characters into ${what}${submit ? ', and pressed Enter' : ''}.`
        }),
    }),
    pageTool(toolkit, {
      name: 'browser_press_key',
      description: 'Presses a key. The element that has the focus receives it',
      inputSchema: z.strictObject({
        key: z
          .string()
          .min(1)
          .max(100)
          .describe(
            'A character, or the name of a key such as ArrowLeft. Put keys to hold before it, as in Control+Shift+a',
          ),
      }),
      run: ({ key }, call) => {
        const press = parseKeys(key, call.isMac)
        if (press === undefined) {
          throw new BrowserError(
            'INVALID_ARGUMENTS',
            `arguments.key: got ${JSON.stringify(key)}, expected a character or a key such as Enter, ArrowLeft, F1, Control+a.`,
          )
        }
        if (pastes(press)) {
          throw new BrowserError(
            'INVALID_ARGUMENTS',
            `arguments.key: got ${JSON.stringify(key)}, which pastes the clipboard of the person. Use browser_type to enter text.`,
          )
        }
        return call.perform(async () => {
          await worldOf(call.page, mainFrameOf(call.page), call.signal)
          await pressKey(call.page, press, call.signal)
          return `Pressed ${key}.`
        })
      },
    }),
    pageTool(toolkit, {
      name: 'browser_select_option',
      description: 'Selects options of a select element',
      inputSchema: z.strictObject({
        ...ELEMENT,
        values: z.array(z.string().max(1000)).min(1).max(100).describe('The values or labels of the options'),
      }),
      run: ({ target, values }, call) => call.perform(() => selectOptions(call, target, values)),
    }),
  ]
}

interface Field {
  readonly kind: 'text' | 'keys' | 'disabled' | 'readonly' | 'other'
  readonly what: string
}

async function focusField({ page, times, signal }: PageCall, target: string, isSlow: boolean) {
  let element = await findElement(page, target, times, signal)
  let field: Field = { kind: 'other', what: target }
  await until(
    async () => {
      element = await findElement(page, target, times, signal)
      field = await callOn<Field>(page, element, TEXT_FIELD, [], signal)
      return field.kind !== 'disabled' && field.kind !== 'readonly'
    },
    { ms: times.actionMs, signal },
  )
  const { kind, what } = field
  if (kind === 'disabled' || kind === 'readonly') {
    throw new BrowserError('ELEMENT_DISABLED', `${target} (${what}) is ${kind === 'disabled' ? kind : 'read-only'}.`)
  }
  if (!isSlow && kind === 'keys') {
    throw new BrowserError(
      'WRONG_ELEMENT',
      `${target} (${what}) has several parts. Set slowly to true, and type the keys of each part.`,
    )
  }
  if (!isSlow && kind === 'other') {
    throw new BrowserError('WRONG_ELEMENT', `${target} (${what}) takes no text.`)
  }
  await scrollIntoView(page, element, signal)
  try {
    const { backendNodeId, frame } = element
    await page.debuggee.send('DOM.focus', { backendNodeId }, { sessionId: frame.sessionId, signal })
  } catch (error) {
    if (!(error instanceof ProtocolRefusal)) throw error
    throw new BrowserError(
      'ELEMENT_INVISIBLE',
      `${target} (${what}) cannot get the focus, because it is not visible or takes no focus.`,
    )
  }
  return { element, what }
}

async function replaceText({ page, signal }: PageCall, element: Element, text: string): Promise<void> {
  const hasText = await callOn<boolean>(page, element, SELECT_TEXT, [], signal)
  if (text !== '') {
    await guardKeyboard(page, signal)
    await page.debuggee.send('Input.insertText', { text }, { signal })
  } else if (hasText) {
    const press = parseKeys('Delete', false)
    if (press !== undefined) await pressKey(page, press, signal)
  }
}

interface Selection {
  readonly state: 'other' | 'disabled' | 'single' | 'missing' | 'selected'
  readonly what: string
  readonly labels?: readonly string[]
  readonly missing?: readonly string[]
}

async function selectOptions(call: PageCall, target: string, values: readonly string[]): Promise<string> {
  const { page, times, signal } = call
  let selection: Selection = { state: 'other', what: target }
  await until(
    async () => {
      const element = await findElement(page, target, times, signal)
      await scrollIntoView(page, element, signal)
      selection = await callOn<Selection>(page, element, SELECT_OPTIONS, [values], signal)
      return selection.state !== 'missing' && selection.state !== 'disabled'
    },
    { ms: times.actionMs, signal },
  )
  const { state, what, labels = [], missing = [] } = selection
  switch (state) {
    case 'other':
      throw new BrowserError('WRONG_ELEMENT', `${target} (${what}) is not a select element. Click its options instead.`)
    case 'single':
      throw new BrowserError(
        'WRONG_ELEMENT',
        `${target} (${what}) takes one option, but arguments.values has ${values.length}.`,
      )
    case 'disabled':
      throw new BrowserError('ELEMENT_DISABLED', `${target}: ${what} is disabled.`)
    case 'missing':
      throw new BrowserError(
        'ELEMENT_NOT_FOUND',
        `${target} has no option ${missing.map((one) => JSON.stringify(one)).join(', ')}. It has: ${labels.map((one) => JSON.stringify(one)).join(', ')}.`,
      )
    case 'selected':
      return `Selected ${labels.map((one) => JSON.stringify(one)).join(', ')} in ${what.slice(0, 200)}.`
  }
}
