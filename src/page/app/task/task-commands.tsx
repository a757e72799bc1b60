/** The commands of a task, with their arguments and results. */
import type { PageTaskDetail } from '../../wire.js'
import { COMMAND_WORDS, STATE_OF_COMMAND } from '../text/command-states.js'
import { duration } from '../text/format.js'
import { colorOf } from '../text/states.js'
import { StateIcon } from '../shell/state-icon.js'
import { ValueView } from '../text/value-view.js'
import { visible, visibleLines } from '../text/visible.js'
import { SubHeading } from './section.js'
import { pathOf } from './use-task-detail.js'

interface Props {
  readonly taskKey: string
  readonly commands: NonNullable<PageTaskDetail['commands']>
}

export function TaskCommands({ taskKey, commands }: Props) {
  return (
    <ol class="commands">
      {commands.map(({ tool, state, startedAt, endedAt, args, result, error }, index) => (
        <li key={index}>
          <details open={commands.length === 1 || state === 'failed'}>
            <summary>
              <StateIcon state={STATE_OF_COMMAND[state]} />
              <code>{visible(tool)}</code>{' '}
              <span style={{ color: colorOf(STATE_OF_COMMAND[state]) }}>{COMMAND_WORDS[state]}</span>
              {startedAt !== undefined && endedAt !== undefined && (
                <span class="hint number"> {duration(endedAt - startedAt)}</span>
              )}
            </summary>
            <SubHeading>Arguments</SubHeading>
            <ValueView value={args} path={`${pathOf(taskKey)}/value/args.${index}`} label={`Arguments of ${tool}`} />
            {result && (
              <>
                <SubHeading>Result</SubHeading>
                <ValueView
                  value={result}
                  path={`${pathOf(taskKey)}/value/result.${index}`}
                  label={`Result of ${tool}`}
                  fileName={`${taskKey.slice(taskKey.indexOf(':') + 1)}-result-${index + 1}`}
                />
              </>
            )}
            {error !== undefined && <pre class="error-text">{visibleLines(error)}</pre>}
          </details>
        </li>
      ))}
    </ol>
  )
}
