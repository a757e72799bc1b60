/** Planted faults of what enters from outside: values, callbacks and configurations. */
import { ConfigFileError } from '../../src/errors.js'
import type { AsyncTaskManager } from '../../src/index.js'
import { parseConfigBytes } from '../../src/mcp/config-file.js'
import type { CallbackFault } from './hostile-callbacks.property.js'

interface Fault {
  readonly name: string
  readonly invariant: 'A1' | 'A6' | 'F13'
  readonly description: string
}

type ParseConfig = typeof parseConfigBytes

export const valueFaults: readonly (Fault & { readonly alter: (manager: AsyncTaskManager) => AsyncTaskManager })[] = [
  {
    name: 'error-read-without-care',
    invariant: 'A1',
    description: 'a text is made of what a caller gives as an error, though that may throw',
    alter: (manager) => {
      const fail = manager.failTask.bind(manager)
      manager.failTask = (id, error) => fail(id, `Failed: ${error}`)
      return manager
    },
  },
]

export const callbackFaults: readonly (Fault & CallbackFault)[] = [
  {
    name: 'owners-asked-one-after-another',
    invariant: 'A6',
    description: 'the busy checks of all owners wait for each other',
    ...serialised(),
  },
]

export const configFaults: readonly (Fault & { readonly parse: ParseConfig })[] = [
  {
    name: 'configuration-not-checked',
    invariant: 'F13',
    description: 'a configuration is used as it was parsed',
    parse: (bytes) => JSON.parse(Buffer.from(bytes).toString()) as ReturnType<ParseConfig>,
  },
  {
    name: 'comments-cut-out-of-texts',
    invariant: 'F13',
    description: 'what looks like a comment is removed, also inside a text',
    parse: (bytes, file) =>
      parseConfigBytes(
        Buffer.from(
          Buffer.from(bytes)
            .toString()
            .replace(/\/\*.*?\*\//gs, ''),
        ),
        file,
      ),
  },
  {
    name: 'last-comma-refused',
    invariant: 'F13',
    description: 'a configuration may have comments, and no comma after the last item',
    parse: (bytes, file) => {
      if (/,\s*\/\*.*?\*\/\s*\}/s.test(Buffer.from(bytes).toString())) {
        throw new ConfigFileError(file, 'is not JSON: a comma')
      }
      return parseConfigBytes(bytes, file)
    },
  },
  {
    name: 'whole-configuration-quoted',
    invariant: 'F13',
    description: 'the error quotes all that was found',
    parse: withMessage((message, text) => `${message}\n${JSON.stringify(text)}`),
  },
  {
    name: 'configuration-quoted-raw',
    invariant: 'F13',
    description: 'the error writes control characters of the configuration to the terminal',
    parse: withMessage((message, text) => `${message}\n${text.slice(0, 100)}`),
  },
  {
    name: 'configuration-not-named',
    invariant: 'F13',
    description: 'the error does not say which file it is about',
    parse: withMessage((message) => message.replaceAll('/folder/agent-tasks.config.json', 'the file')),
  },
]

function serialised(): CallbackFault {
  let last: Promise<unknown> = Promise.resolve()
  return {
    wrapBusy: (isAgentBusy) => () => {
      const answer = last.then(isAgentBusy)
      last = answer.catch(() => undefined)
      return answer
    },
  }
}

function withMessage(change: (message: string, text: string) => string): ParseConfig {
  return (bytes, path) => {
    try {
      return parseConfigBytes(bytes, path)
    } catch (error) {
      if (!(error instanceof ConfigFileError)) throw error
      throw Object.assign(error, { message: change(error.message, Buffer.from(bytes).toString()) })
    }
  }
}
