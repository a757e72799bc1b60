/** The facts of a task, such as its owner, times, progress and cost. */
import type { ComponentChildren } from 'preact'
import type { PageTask, PageTaskDetail } from '../../wire.js'
import { addressOf } from '../addresses.js'
import { usePage } from '../page-state.js'
import { Length } from '../shell/length.js'
import { DELIVERY_MEANINGS, whyWaits } from '../text/deliveries.js'
import { duration, fullTime, preciseTime, stoppingText } from '../text/format.js'
import { ownerText } from '../text/owners.js'
import { progressOf } from '../text/progress.js'
import { spendingText } from '../text/spending.js'
import { visible } from '../text/visible.js'

export function TaskFacts({ task, detail }: { readonly task: PageTask; readonly detail: PageTaskDetail }) {
  const { createdAt, startedAt, endedAt, parentKey, kind, subagent, id, attempt, delivery } = task
  const { facts = [], timeoutMs, budget, spent, program, traceUrl, children = [], after = [], neededBy = [] } = detail
  const { taskOf, owners } = usePage().view.value
  const progress = progressOf(task)
  const parent = parentKey === undefined ? undefined : taskOf(parentKey)
  return (
    <dl class="facts">
      {progress && (
        <Fact name="Progress" isWide>
          {progress.part !== undefined && <progress value={progress.part} max={1} aria-label="Progress" />}{' '}
          {visible(progress.text)}
        </Fact>
      )}
      <Fact name="Duration">
        <Length task={task} />
        {startedAt !== undefined && startedAt > createdAt && ` · queued for ${duration(startedAt - createdAt)}`}
      </Fact>
      <Fact name="Created">
        <Time at={createdAt} />
      </Fact>
      {startedAt !== undefined && (
        <Fact name="Started">
          <Time at={startedAt} />
        </Fact>
      )}
      {endedAt !== undefined && (
        <Fact name="Ended">
          <Time at={endedAt} />
        </Fact>
      )}
      {timeoutMs !== undefined && <Fact name="Deadline">after {duration(timeoutMs)}</Fact>}
      {task.stopsWithinMs !== undefined && (
        <Fact name="Stopping" isWide>
          {stoppingText(task.stopsWithinMs)}
        </Fact>
      )}
      {facts.map(({ name, text }) => (
        <Fact key={name} name={name} isWide>
          {visible(text)}
        </Fact>
      ))}
      <Fact name={kind === 'async' ? 'Owner' : 'Instance'}>{visible(ownerText(task, parent))}</Fact>
      {subagent !== undefined && <Fact name="Subagent">{visible(subagent)}</Fact>}
      <Fact name="Id" isWide>
        <code>{visible(id)}</code>
      </Fact>
      {traceUrl !== undefined && (
        <Fact name="Trace" isWide>
          <a href={traceUrl} target="_blank" rel="noopener noreferrer">
            {visible(new URL(traceUrl).host)}
          </a>
        </Fact>
      )}
      {attempt !== undefined && <Fact name="Attempt">{attempt}</Fact>}
      {delivery !== undefined && delivery !== 'none' && (
        <Fact name="Delivery" isWide>
          <a href="#/delivery">{delivery}</a>
          {' · '}
          {whyWaits(
            task,
            owners.find(({ owner }) => owner === task.group),
          ) ?? DELIVERY_MEANINGS[delivery]}
        </Fact>
      )}
      {(budget ?? spent) && (
        <Fact name="Spent" isWide>
          {spendingText(spent ?? {}, budget)}
        </Fact>
      )}
      {program && (
        <Fact name="Program" isWide>
          {<Program program={program} />}
        </Fact>
      )}
      {parentKey !== undefined && (
        <Fact name="Parent" isWide>
          <TaskLink taskKey={parentKey} />
        </Fact>
      )}
      <TaskLinks name="Children" keys={children} />
      <TaskLinks name={startedAt === undefined ? 'Waits for' : 'Ran after'} keys={after} />
      <TaskLinks name="Needed by" keys={neededBy} />
    </dl>
  )
}

function TaskLinks({ name, keys }: { readonly name: string; readonly keys: readonly string[] }) {
  if (keys.length === 0) return null
  return (
    <Fact name={name} isWide>
      <ul class="links">
        {keys.map((key) => (
          <li key={key}>
            <TaskLink taskKey={key} />
          </li>
        ))}
      </ul>
    </Fact>
  )
}

interface FactProps {
  readonly name: string
  readonly isWide?: boolean
  readonly children: ComponentChildren
}

function Fact({ name, isWide = false, children }: FactProps) {
  return (
    <div class={isWide ? 'wide' : undefined}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Time({ at }: { readonly at: number }) {
  return (
    <time class="number" title={fullTime(at)} dateTime={new Date(at).toISOString()}>
      {preciseTime(at)}
    </time>
  )
}

function Program({ program }: { readonly program: NonNullable<PageTaskDetail['program']> }) {
  const { command, pid, exitCode, signal } = program
  const facts = [
    pid !== undefined && `process ${pid}`,
    exitCode !== undefined && `exit code ${exitCode}`,
    signal !== undefined && `ended by ${signal}`,
  ]
  return (
    <>
      <code>{visible(command.join(' '))}</code> {facts.filter(Boolean).join(' · ')}
    </>
  )
}

/** A link to a task with its title, or with its key if the page no longer knows the task. */
export function TaskLink({ taskKey }: { readonly taskKey: string }) {
  const task = usePage().view.value.taskOf(taskKey)
  return <a href={addressOf('task', taskKey)}>{visible(task?.title ?? taskKey)}</a>
}
