/** Planted faults of F1 to F3, through public options and wrappers only. */
import { outputFiles } from '../../src/features/output-files/output-files.js'
import { outputLogs } from '../../src/features/output/output-log.js'
import { skip } from 'rxjs'
import type fc from 'fast-check'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { formatCompletionNotification } from '../../src/features/delivery/notifications.js'
import { AsyncTaskReminderService } from '../../src/features/delivery/reminder-service.js'
import type { CommandPolicy } from '../../src/tools/command-policy.js'
import { createRunCommandTool } from '../../src/tools/run-command.js'
import { outputFilesProperty } from './output-files.property.js'
import { outputStreamProperty, type WrapManager } from './output-stream.property.js'
import { resultPreviewProperty } from './result-preview.property.js'
import { runCommandProperty } from './run-command.property.js'

export interface JobFault {
  readonly name: string
  readonly invariant: 'F1' | 'F2' | 'F3'
  readonly description: string
  readonly property: string
  readonly broken: () => fc.IRawProperty<unknown>
}

/** The properties without a fault, by name. */
export const jobProperties: ReadonlyMap<string, () => fc.IRawProperty<unknown>> = new Map<
  string,
  () => fc.IRawProperty<unknown>
>([
  ['commands', () => runCommandProperty()],
  ['output streams', () => outputStreamProperty()],
  ['output files', () => outputFilesProperty()],
  ['previews', () => resultPreviewProperty()],
])

const withPolicy = (change: (policy: CommandPolicy) => CommandPolicy) => ({
  property: 'commands',
  broken: () =>
    runCommandProperty((options) => createRunCommandTool({ ...options, commands: change(options.commands) })),
})

const withManager = (wrap: (manager: AsyncTaskManager) => void) => {
  const wrapped: WrapManager = (manager) => {
    wrap(manager)
    return manager
  }
  return { property: 'output streams', broken: () => outputStreamProperty(wrapped) }
}

const withMessage = (change: (text: string, manager: AsyncTaskManager) => string) => ({
  property: 'previews',
  broken: () =>
    resultPreviewProperty((manager) => {
      const reminders = new AsyncTaskReminderService(manager, { maxMessageChars: 3000 })
      const lease = reminders.leaseReminder.bind(reminders)
      reminders.leaseReminder = (request) => {
        const leased = lease(request)
        return leased && { ...leased, text: change(leased.text, manager) }
      }
      return reminders
    }),
})

export const jobFaults: readonly JobFault[] = [
  {
    name: 'starts-a-program-that-is-not-allowed',
    invariant: 'F1',
    description: 'A program is started that the host has not allowed.',
    ...withPolicy((policy) => ({ ...policy, allow: [...(policy.allow ?? []), 'printf'] })),
  },
  {
    name: 'passes-variables-unnamed',
    invariant: 'F1',
    description: 'A call sets a variable that the host has not named.',
    ...withPolicy((policy) => ({ ...policy, env: [...(policy.env ?? []), 'C_VAR'] })),
  },
  {
    name: 'runs-anywhere',
    invariant: 'F1',
    description: 'A program is started in a folder that is not within those of the host.',
    ...withPolicy((policy) => ({ ...policy, cwd: [...[policy.cwd ?? '.'].flat(), '/'] })),
  },
  {
    name: 'output-dropped-at-cancellation',
    invariant: 'F2',
    description: 'What a task had written is dropped when it is cancelled.',
    ...withManager(({ registry }) => {
      const cancel = registry.cancel.bind(registry)
      registry.cancel = (entry) => {
        outputLogs.take(entry)
        return cancel(entry)
      }
    }),
  },
  {
    name: 'output-followed-without-what-was-kept',
    invariant: 'F2',
    description: 'A stream begins with what is written after its first part.',
    ...withManager((manager) => {
      const output$ = manager.output$.bind(manager)
      manager.output$ = (...request) => output$(...request).pipe(skip(1))
    }),
  },
  {
    name: 'output-file-outlives-its-record',
    invariant: 'F2',
    description: 'The file with the output of a task is not removed with its record.',
    property: 'output files',
    broken: () =>
      outputFilesProperty((manager) => {
        manager.registry.use(outputFiles).pruned = () => undefined
        return manager
      }),
  },
  {
    name: 'preview-splits-a-character',
    invariant: 'F3',
    description: 'A message is cut inside a character.',
    ...withMessage((text) => text.replace(/[\uDC00-\uDFFF]\.\.\. \[/, '... [')),
  },
  {
    name: 'long-result-copied',
    invariant: 'F3',
    description: 'A message carries all of a long result.',
    ...withMessage((text, manager) => {
      const whole = formatCompletionNotification(manager.getTask('a')!)
      return text.replace(
        /(---\n[^\n]*\n\n[^\n]*\n\n)[^]*(\n---)$/,
        (_all, head: string, tail: string) => `${head}${whole}${tail}`,
      )
    }),
  },
]
