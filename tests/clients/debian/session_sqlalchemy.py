"""A session through SQLAlchemy: schema, ORM, core, reflection, transactions, threads."""
import sys
import threading

import sqlalchemy as sa
from sqlalchemy.orm import Session, declarative_base, relationship

Base = declarative_base()


class Author(Base):
    __tablename__ = "author"
    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.String(40), nullable=False, unique=True)
    books = relationship("Book", back_populates="author", order_by="Book.title")


class Book(Base):
    __tablename__ = "book"
    id = sa.Column(sa.Integer, primary_key=True)
    title = sa.Column(sa.String, index=True)
    price = sa.Column(sa.Numeric(8, 2))
    author_id = sa.Column(sa.ForeignKey("author.id"))
    author = relationship("Author", back_populates="books")


def main():
    engine = sa.create_engine(f"sqlite:///{sys.argv[1]}", connect_args={"timeout": 20})
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(Author(name="Ann", books=[Book(title="B", price=2), Book(title="A", price=1)]))
        session.add(Author(name="Bob", books=[Book(title="C", price=3)]))
        session.commit()
        for author in session.scalars(sa.select(Author).order_by(Author.name)):
            print(author.id, author.name, [(book.title, str(book.price)) for book in author.books])
        query = (sa.select(Author.name, sa.func.count(Book.id), sa.func.sum(Book.price))
                 .join(Book).group_by(Author.name).order_by(sa.desc(sa.func.count(Book.id))))
        print([(name, count, str(total)) for name, count, total in session.execute(query)])
        session.add(Author(name="Ann"))
        try:
            session.commit()
        except sa.exc.IntegrityError as error:
            print(type(error.orig).__name__, error.orig)
            session.rollback()
        with session.begin_nested():
            session.add(Author(name="Cid"))
        session.rollback()
        print(session.scalar(sa.select(sa.func.count()).select_from(Author)))
        session.execute(sa.update(Book).where(Book.price > 1).values(price=Book.price * 10))
        session.commit()
        print([str(p) for p in session.scalars(sa.select(Book.price).order_by(Book.id))])
    inspector = sa.inspect(engine)
    print(inspector.get_table_names())
    print([(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns("book")])
    print(inspector.get_indexes("book"), inspector.get_foreign_keys("book"))
    print(inspector.get_unique_constraints("author"), inspector.get_pk_constraint("author"))

    def work(number):
        for i in range(10):
            with engine.begin() as connection:
                connection.execute(sa.insert(Author).values(name=f"w{number}-{i}"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engine.connect() as connection:
        print(connection.scalar(sa.text("SELECT count(*) FROM author WHERE name LIKE 'w%'")))
    engine.dispose()


main()
