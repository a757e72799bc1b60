/** The parts of what is known of a task; those that it does not have are left out. */
import type { PageTask, PageTaskDetail } from '../../wire.js'
import { Charts } from '../charts.js'
import { usePage } from '../page-state.js'
import { taskPath } from '../task-path.js'
import { ValueView } from '../text/value-view.js'
import { LiveOutput } from './live-output.js'
import { QuestionForm } from './question-form.js'
import { Section } from './section.js'
import { TaskAttempts } from './task-attempts.js'
import { TaskCommands } from './task-commands.js'
import { TaskError } from './task-error.js'
import { TaskEvents } from './task-events.js'
import { TaskFacts } from './task-facts.js'
import { TaskImages } from './task-images.js'
import { TaskMachine } from './task-machine.js'
import { pathOf } from './use-task-detail.js'

interface Props {
  readonly task: PageTask
  readonly detail: PageTaskDetail
}

export function TaskSections({ task, detail }: Props) {
  const { view } = usePage()
  const { key } = task
  const { questions = [], goal, commands, error, result, images = [], attempts = [], events } = detail
  const value = (name: string): string => `${pathOf(key)}/value/${name}`
  return (
    <div class="sections" key={key}>
      {questions.length > 0 && (
        <Section title={questions.length === 1 ? 'Question' : 'Questions'} isUrgent>
          {questions.map((question) => (
            <QuestionForm key={question.id} taskKey={key} question={question} />
          ))}
        </Section>
      )}
      <Section title="Facts">
        <TaskFacts task={task} detail={detail} />
      </Section>
      {goal && (
        <Section title="Goal">
          <ValueView value={goal} path={value('goal')} label="Goal" />
        </Section>
      )}
      {commands && (
        <Section title="Commands">
          <TaskCommands taskKey={key} commands={commands} />
        </Section>
      )}
      {task.kind === 'async' && <LiveOutput key={key} taskKey={key} attempt={task.attempt} />}
      {error && (
        <Section title="Error">
          <TaskError error={error} valuePath={value} />
        </Section>
      )}
      {(result ?? images[0]) && (
        <Section title="Result">
          {result && <ValueView value={result} path={value('result')} label="Result" />}
          {images.length > 0 && <TaskImages taskKey={key} images={images} />}
        </Section>
      )}
      {attempts.length > 0 && (
        <Section title="Earlier attempts">
          <TaskAttempts attempts={attempts} />
        </Section>
      )}
      <Section title="Machine">
        <Charts counts={view.value.machines} path={taskPath(task, events)} level={4} />
      </Section>
      <Section title="Events">
        <TaskEvents events={events} />
      </Section>
      <Section title="Machine">
        <TaskMachine task={task} events={events} />
      </Section>
    </div>
  )
}
