/** The sections of a task's details. Empty sections are left out. */
import type { CutValue, PageTask, PageTaskDetail } from '../../wire.js'
import { LOOKS, type Look } from '../text/states.js'
import { ValueView } from '../text/value-view.js'
import { LiveOutput } from './live-output.js'
import { QuestionForm } from './question-form.js'
import { Section } from './section.js'
import { TaskAnswers } from './task-answers.js'
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
  readonly isAlone: boolean
}

export function TaskSections({ task, detail, isAlone }: Props) {
  const { key } = task
  const { errorTitle = 'Error' }: Look = LOOKS[task.state]
  const { questions = [], answers = [], goal, commands, error, result, images = [], attempts = [], events } = detail
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
      {answers.length > 0 && (
        <Section title={answers.length === 1 ? 'Answer' : 'Answers'}>
          <TaskAnswers answers={answers} />
        </Section>
      )}
      <Section title="Facts">
        <TaskFacts task={task} detail={detail} />
      </Section>
      {error && (
        <Section title={errorTitle}>
          <TaskError error={error} valuePath={value} />
        </Section>
      )}
      {(result ?? images[0]) && (
        <Section title="Result">
          {result && <ValueView value={result} path={value('result')} label="Result" fileName={`${task.id}-result`} />}
          {images.length > 0 && <TaskImages taskKey={key} images={images} />}
        </Section>
      )}
      {task.kind === 'async' && <LiveOutput key={key} taskKey={key} attempt={task.attempt} />}
      {commands && (
        <Section title="Commands">
          <TaskCommands taskKey={key} commands={commands} />
        </Section>
      )}
      {goal && !isSaid(goal, task.title) && (
        <Section title="Goal">
          <ValueView value={goal} path={value('goal')} label="Goal" />
        </Section>
      )}
      {attempts.length > 0 && (
        <Section title="Earlier attempts">
          <TaskAttempts attempts={attempts} />
        </Section>
      )}
      <Section title="Events">
        <TaskEvents events={events} />
      </Section>
      <TaskMachine task={task} events={events} isOpen={isAlone} />
    </div>
  )
}

/** Whether the title above already shows the whole goal. */
function isSaid(goal: CutValue, title: string): boolean {
  return goal.text === title && title.length <= 120
}
